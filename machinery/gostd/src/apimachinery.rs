//! The packages of `k8s.io/apimachinery` that depend on Go's standard library alone: amounts and names.
//!
//! They are here, and not in the vocabulary of the Kubernetes API, so that an expression language can offer them without
//! depending on it.

pub mod quantity;
pub mod validation;
