//! Audit policy and audit events of `audit.k8s.io/v1`: the recorded data of a request, and its encoding.
//!
//! Performs no I/O: input are attributes and times, output are a decision and bytes. Does not depend on HTTP or files.

pub mod event;
mod level;
mod managed_fields;
pub mod policy;
mod raw_json;
mod source_ips;

pub use event::{Event, ObjectReference, ResponseStatus};
pub use level::{Level, Stage, Stages};
pub use managed_fields::without_managed_fields;
pub use policy::{AuditConfig, Policy, PolicyError};
pub use source_ips::source_ips;

/// The API version of events and policies.
pub const API_VERSION: &str = "audit.k8s.io/v1";
