//! Faults that a test requests (`--test-faults`): the affected requests, the effects, and the faults that are set.
//!
//! [`crate::layers::test_faults`] applies them, [`crate::endpoints`] sets and removes them. Rules, statuses,
//! revisions and the cutting of streams are pure; only [`FaultStore`] is shared. Does not depend on the handler of
//! a request (docs/internals/adr/0034).

mod body_name;
mod events;
mod fault;
mod in_force;
mod reasons;
mod refusal;
mod requests;
mod stale;
mod watch_body;

pub use body_name::name_in;
pub use fault::{Fault, Rule};
pub use in_force::{Claim, FaultsInForce};
pub use refusal::refusal;
pub use requests::Asked;
pub use stale::{Earlier, item};
pub use watch_body::WatchBody;
