//! RBAC, pure: rules and what they match, the index that decides, and the arithmetic of escalation.
//!
//! Upstream rules: generic API server 11.3, access kinds 1. Must not know where roles and bindings come from.

mod cover;
mod fact;
mod policy;
mod rule;

pub use cover::{cluster_admin, escalation, missing};
pub use fact::{Binding, Fact, Key, KeyError, Resource, RoleRef, Subject};
pub use policy::{Policy, Resolved, Ruling, aggregate};
pub use rule::Rule;

/// The group of the four kinds.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// What matches everything.
pub const ALL: &str = "*";
