//! Lists of objects that admission checks writes against, and the handling of objects that cannot be read from the store.
//!
//! An unreadable rule must not count as absent: writes that it might match are refused, as upstream refuses them until
//! its informers have synced.

use std::sync::Arc;

use portico_machinery::{GroupResource, Object, Status};
use portico_registry::{Attributes, Objects, Result, stored_object};
use portico_store::{Record, Snapshot, Store, Unreadable};

/// Message of upstream while its informers have not synced.
const NOT_READY: &str = "not yet ready to handle request";
/// Maximum number of objects that one message names.
const MAX_NAMED: usize = 3;

/// Readable objects, and a message about unreadable ones.
pub(crate) struct Listing<T> {
    pub(crate) objects: Vec<T>,
    problem: Option<String>,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self { objects: Vec::new(), problem: None }
    }
}

impl<T> Listing<T> {
    /// True if there are no objects, readable or not.
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.problem.is_none()
    }

    /// Returns the objects if all of them could be read.
    ///
    /// # Errors
    /// 403 for the request, with the names of unreadable objects.
    pub(crate) fn complete(self, attributes: &Attributes<'_>) -> Result<Vec<T>> {
        match self.problem {
            Some(problem) => Err(not_ready(attributes, &problem)),
            None => Ok(self.objects),
        }
    }
}

impl Listing<Arc<Record>> {
    /// Lists the objects of a namespace, or all objects. An object whose key is damaged may belong to any namespace.
    pub(crate) fn of_snapshot(store: &dyn Store, snapshot: &Snapshot, namespace: Option<&str>) -> Self {
        let objects = snapshot.range(namespace, None).cloned().collect();
        let missing = store.incomplete_reason(snapshot.resource());
        let unreadable = unreadable_in(snapshot, namespace);
        Self { objects, problem: problem(snapshot.resource(), missing.as_deref(), unreadable) }
    }

    pub(crate) fn decode(self) -> Listing<Object> {
        let objects = self.objects.iter().map(|record| stored_object::decode(record)).collect();
        Listing { objects, problem: self.problem }
    }
}

/// Returns unreadable objects that may belong to a namespace, or all unreadable objects.
pub(crate) fn unreadable_in<'s>(
    snapshot: &'s Snapshot,
    namespace: Option<&'s str>,
) -> impl Iterator<Item = &'s Unreadable> {
    let all = snapshot.unreadable_in(None);
    all.filter(move |object| namespace.is_none_or(|namespace| object.may_be_in(namespace)))
}

/// Returns the decoded objects of a resource in a namespace, or in all namespaces; empty if the resource is not served.
pub(crate) async fn list_all(
    objects: &Objects,
    namespace: Option<&str>,
    resource: &GroupResource,
) -> Result<Listing<Object>> {
    let Ok(served) = objects.served_resource(resource) else {
        return Ok(Listing::default());
    };
    let snapshot = objects.snapshot(&served).await?;
    Ok(Listing::of_snapshot(&*objects.store, &snapshot, namespace).decode())
}

/// Names the unreadable objects, or reports why objects may be missing, with the command that repairs this. `None` if all objects
/// are readable.
pub(crate) fn problem<'u>(
    resource: &GroupResource,
    missing: Option<&str>,
    mut unreadable: impl Iterator<Item = &'u Unreadable>,
) -> Option<String> {
    if let Some(message) = missing {
        return Some(format!("{resource} may be missing from the storage: {message}; see `portico doctor`"));
    }
    let mut names = vec![unreadable.next()?.key().path()];
    names.extend(unreadable.by_ref().take(MAX_NAMED - 1).map(|object| object.key().path()));
    let hidden_count = unreadable.count();
    let names = names.join(", ")
        + &if hidden_count > 0 { format!(" and {hidden_count} more") } else { String::new() };
    Some(format!(
        "{resource} {names} cannot be read from the storage: restore the encryption key or delete the object, or remove it with \
         `portico doctor`"
    ))
}

/// Returns 403 for a request that an unreadable object might match.
pub(crate) fn not_ready(attributes: &Attributes<'_>, problem: &str) -> Box<Status> {
    let name = if attributes.name.is_empty() { "Unknown" } else { attributes.name };
    Box::new(Status::forbidden(
        &attributes.served_resource.resource,
        name,
        &format!("{NOT_READY}: {problem}"),
    ))
}
