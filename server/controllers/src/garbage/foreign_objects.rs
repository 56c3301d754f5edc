//! Owners and dependents on other API servers, kept separate from local ones.
//!
//! A server that does not respond must not delay other work, and an object is never deleted because a server does not respond.

pub mod decision;
mod dependents;
mod owners;

use std::collections::HashMap;

use futures::future::BoxFuture;
use portico_machinery::GroupVersionKind;
use portico_machinery::object::OwnerReference;

use super::decision::OwnerState;
pub(super) use dependents::ForeignDependents;
pub(super) use owners::ForeignOwners;

/// An owner on another server, as named by an owner reference.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ForeignOwner {
    pub kind: GroupVersionKind,
    /// Namespace of the dependent, and of the owner if its kind is namespaced.
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

/// An object with owners on another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignObject {
    /// Name of the APIService through which the object was found, such as `v1.group`.
    pub route: String,
    /// URL path of the object.
    pub path: String,
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: String,
    pub uid: String,
    pub resource_version: String,
    pub finalizers: Vec<String>,
    pub owners: Vec<OwnerReference>,
}

/// Outcome of the deletion of a local owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerOutcome {
    /// Deleted together with its dependents.
    Deleted,
    /// Deleted without its dependents.
    Orphaned,
}

/// Outcomes of deleted local owners, by UID.
pub type OwnerOutcomes = HashMap<String, OwnerOutcome>;

/// Dependents of some owners on other servers.
#[derive(Clone, Debug, Default)]
pub struct ForeignDependentList {
    /// Dependents that were found.
    pub objects: Vec<ForeignObject>,
    /// Servers that could not be queried, with the reason.
    pub unreachable: Vec<String>,
}

/// Action for an object on another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DependentAction {
    /// Delete the object with this propagation policy.
    Delete(&'static str),
    /// Replace its owners by these.
    SetOwners(Vec<OwnerReference>),
}

/// Access to other API servers by requests.
pub trait ForeignObjectClient: Send + Sync {
    /// Looks up an owner. Returns [`OwnerState::Unknown`] unless the server of its kind reports whether the owner exists.
    fn owner<'a>(&'a self, owner: &'a ForeignOwner) -> BoxFuture<'a, OwnerState>;

    /// Lists the dependents of these owners.
    fn dependents<'a>(&'a self, outcomes: &'a OwnerOutcomes) -> BoxFuture<'a, ForeignDependentList>;

    /// Executes an action, unless the object has changed. Succeeds if the object is already gone.
    fn execute<'a>(
        &'a self,
        object: &'a ForeignObject,
        action: &'a DependentAction,
    ) -> BoxFuture<'a, Result<(), String>>;
}
