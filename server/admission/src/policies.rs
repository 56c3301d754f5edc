//! Admission policies (upstream's `ValidatingAdmissionPolicy` and `MutatingAdmissionPolicy` plugins): expressions that the server
//! evaluates for each request that a policy and one of its bindings match.
//!
//! A policy is compiled once for each of its states. Policies, bindings and parameters are read from snapshots of the store, so a
//! change is in effect for the next request.

mod binding;
mod exclusion;
mod explain;
mod hooks;
mod invocations;
mod mutating;
mod params;
mod policy;
mod refusal;
mod validating;

pub(crate) use exclusion::is_excluded;
pub use explain::{ExplainedBinding, ExplainedPolicy};
pub(crate) use hooks::{Hook, Hooks};
pub(crate) use mutating::{MutatingHook, Round as PolicyRound, mutate};
pub(crate) use validating::validate;
