//! RBAC roles and bindings: a feed of their content for authorizers, and the bootstrap policy.

pub mod aggregation;
pub mod bootstrap;
pub mod policy;

use portico_machinery::GroupResource;
use portico_machinery::rbac::{GROUP, Resource};

/// Returns true if a resource is part of the RBAC policy.
#[must_use]
pub fn is_policy(resource: &GroupResource) -> bool {
    resource.group == GROUP && Resource::ALL.into_iter().any(|one| one.name() == resource.resource)
}
