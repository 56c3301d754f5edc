//! Quotas: how much of what they limit an object needs (upstream's `quota.Evaluator`), and which objects a quota is about.
//!
//! Pure: objects in, amounts out. Admission charges with it what is written, the controller recounts with it what is
//! there. Knows no request, no store and no clock.

mod claims;
mod counts;
mod devices;
mod evaluator;
mod evaluators;
mod pods;
mod requirement;
mod scopes;
mod services;
mod surroundings;
mod total;

pub use evaluator::Evaluator;
pub use evaluators::{counted_resources, evaluator, may_count};
pub use requirement::Requirement;
pub use scopes::{matches, requirements};
pub use surroundings::{Surroundings, extended_claim_owner};
pub use total::total;

pub use portico_validation::pod_spec::totals::{Amounts, add, amounts};
