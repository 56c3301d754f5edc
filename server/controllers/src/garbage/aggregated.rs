//! Owners and dependents that other API servers hold: what is asked of those, and how that is kept apart from the rest.
//!
//! A server that does not answer must hold up nobody, and nothing is ever deleted because of its silence.

pub mod decide;
mod dependents;
mod owners;

use std::collections::HashMap;

use futures::future::BoxFuture;
use portico_machinery::GroupVersionKind;
use portico_machinery::object::OwnerReference;

use super::decide::Owner;
pub(super) use dependents::ForeignDependents;
pub(super) use owners::ForeignOwners;

/// An owner that is not ours, as a reference names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ForeignOwner {
    /// Its group version and kind.
    pub kind: GroupVersionKind,
    /// The dependent's namespace: the owner's, too, when its kind has namespaces.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// An object with owners that is not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignObject {
    /// `v1.group`: the APIService through which it was found.
    pub route: String,
    /// Its path.
    pub path: String,
    /// Its namespace, empty at cluster scope.
    pub namespace: String,
    /// Its uid.
    pub uid: String,
    /// Its resource version.
    pub resource_version: String,
    /// Its finalizers.
    pub finalizers: Vec<String>,
    /// Its owners.
    pub owners: Vec<OwnerReference>,
}

/// What became of an owner of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Gone, with its dependents.
    Deleted,
    /// Gone without them.
    Orphaned,
}

/// Owners of ours that are gone, by uid.
pub type Outcomes = HashMap<String, Outcome>;

/// What others hold of the dependents of some owners.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// The dependents that were found.
    pub objects: Vec<ForeignObject>,
    /// Who could not be asked, and why.
    pub unreachable: Vec<String>,
}

/// What to do to an object that another server holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Delete it, with this propagation policy.
    Delete(&'static str),
    /// Leave it these owners.
    Keep(Vec<OwnerReference>),
}

/// Other API servers, asked live.
pub trait OtherServers: Send + Sync {
    /// Looks for an owner. [`Owner::Unknown`] unless the server that serves its kind says that it is, or is not, there.
    fn owner<'a>(&'a self, owner: &'a ForeignOwner) -> BoxFuture<'a, Owner>;

    /// Looks for dependents of these owners.
    fn dependents<'a>(&'a self, outcomes: &'a Outcomes) -> BoxFuture<'a, Held>;

    /// Does it, unless the object has changed; what is gone already is done.
    fn carry_out<'a>(
        &'a self,
        object: &'a ForeignObject,
        action: &'a Action,
    ) -> BoxFuture<'a, Result<(), String>>;
}
