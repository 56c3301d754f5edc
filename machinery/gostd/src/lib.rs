//! What Go's standard library reads and prints, once for all crates.
//!
//! Clients and kube-apiserver agree on texts because both use Go's packages. Each module here is named after the Go
//! package whose behaviour it implements, and is the only implementation of it in the workspace. Pure: no IO, no clock,
//! and nothing of Kubernetes.

pub mod json;
pub mod mime;
pub mod netip;
pub mod os;
pub mod strconv;
pub mod time;
pub mod url;
