//! Roles and bindings: their content is followed for whoever decides, and the first of them are made at the start.

pub mod aggregation;
pub mod bootstrap;
pub mod policy;

use portico_machinery::GroupResource;
use portico_machinery::rbac::{GROUP, Resource};

/// Whether objects of this resource are what decisions are made by.
#[must_use]
pub fn is_policy(resource: &GroupResource) -> bool {
    resource.group == GROUP && Resource::ALL.into_iter().any(|one| one.name() == resource.resource)
}
