//! Faults that a test requests (`--test-faults`): the affected requests, the effects, and the faults that are set.
//!
//! [`crate::layers::test_faults`] applies them, [`crate::endpoints`] sets and removes them. Rules, statuses,
//! revisions and the cutting of streams are pure; only [`FaultStore`] is shared. Does not depend on the handler of
//! a request (docs/internals/adr/0034).

mod body_name;
mod events;
mod fault;
mod fault_store;
mod reasons;
mod refusal;
mod requests;
mod stale;
mod watch_body;

pub use body_name::object_name;
pub use fault::{Fault, Rule};
pub use fault_store::{Claim, FaultStore};
pub use refusal::refusal;
pub use requests::MatchedRequest;
pub use stale::{EarlierList, only_item};
pub use watch_body::WatchBody;
