//! Flow control (API priority and fairness), the vocabulary: what FlowSchemas and PriorityLevelConfigurations say.
//!
//! Pure. Must not know who queues by it, nor where the objects come from.

mod fact;
mod level;
mod schema;
mod stored;

pub use fact::{Fact, Key, KeyError, Resource};
pub use level::{BrokenLevel, PriorityLevel, Queuing, Response};
pub use schema::{Distinguisher, FlowSchema, NonResourceRule, PolicyRules, ResourceRule};
pub use stored::StoredObjects;

/// The group of both kinds.
pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// The names of the mandatory schema and level that nothing limits.
pub const EXEMPT: &str = "exempt";
/// The names of the mandatory schema and level for whatever matches nothing else.
pub const CATCH_ALL: &str = "catch-all";
