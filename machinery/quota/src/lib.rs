//! Resource quotas: usage of quota resources by objects (upstream's `quota.Evaluator`), and the objects in the scopes of a quota.
//!
//! Performs no I/O: input are objects, output are amounts. Admission charges writes with this crate, the controller recounts
//! existing objects. Does not depend on requests, the store or a clock.

mod claims;
mod counts;
mod device_context;
mod devices;
mod evaluator;
mod evaluators;
mod pods;
mod requirement;
mod scopes;
mod services;
mod total;

pub use device_context::{DeviceContext, extended_claim_owner};
pub use evaluator::Evaluator;
pub use evaluators::{counted_resources, evaluator, may_match_resource};
pub use requirement::ScopeRequirement;
pub use scopes::{matches_scopes, scope_requirements};
pub use total::total_usage;

pub use portico_validation::pod_spec::totals::{ResourceList, add_resources, resource_list};
