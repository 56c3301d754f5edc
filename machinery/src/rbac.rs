//! RBAC without IO: rules and matching, the index that decides requests, and escalation checks.
//!
//! Does not depend on the source of roles and bindings.

mod escalation;
mod fact;
mod policy;
mod rule;

pub use escalation::{cluster_admin_rules, escalation_message, missing_rights};
pub use fact::{Binding, Fact, Key, KeyError, Resource, RoleRef, Subject};
pub use policy::{Policy, PolicyDecision, ResolvedRules, aggregate};
pub use rule::Rule;

/// API group of the four kinds.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// Wildcard that matches everything.
pub const ALL: &str = "*";
