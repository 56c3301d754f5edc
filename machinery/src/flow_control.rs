//! Flow control (API priority and fairness): the content of FlowSchemas and PriorityLevelConfigurations.
//!
//! Does not depend on the implementation of queues or on the source of the objects.

mod fact;
mod level;
mod schema;
mod stored;

pub use fact::{Fact, Key, KeyError, Resource};
pub use level::{InvalidPriorityLevel, LimitResponse, PriorityLevel, Queuing};
pub use schema::{Distinguisher, FlowSchema, NonResourceRule, PolicyRules, ResourceRule};
pub use stored::StoredObjects;

/// API group of both kinds.
pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// Name of the mandatory schema and level without limits.
pub const EXEMPT: &str = "exempt";
/// Name of the mandatory schema and level for requests that match no other schema.
pub const CATCH_ALL: &str = "catch-all";
