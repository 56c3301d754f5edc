//! Responses for objects whose stored bytes cannot be read.
//!
//! A list omits them and warns; all other requests for such an object get status 500 `StorageReadError`,
//! as in upstream (docs/internals/adr/0011).

use portico_machinery::status::{Cause, Details, Reason};
use portico_machinery::{GroupResource, Status};
use portico_store::{TxnError, Unreadable};

/// Maximum number of objects in one warning.
const MAX_NAMED: usize = 10;

/// Status 500 for an existing object that cannot be read. `key` is its path, if more than the name is known.
pub(crate) fn status(resource: &GroupResource, name: &str, key: &str, reason: &str) -> Status {
    let details = Details {
        name: name.to_owned(),
        group: resource.group.clone(),
        kind: resource.resource.clone(),
        ..Details::default()
    };
    let cause = Cause {
        reason: "UnexpectedServerResponse".to_owned(),
        message: reason.to_owned(),
        field: key.to_owned(),
    };
    Status::failure(
        Reason::StorageReadError,
        format!("{resource} {name:?} cannot be read from the storage: {reason}"),
    )
    .with_details(details)
    .with_cause(cause)
}

/// Warning of a list that omits these objects; `None` if there are none.
pub(crate) fn warning(resource: &GroupResource, unreadable: &[Unreadable]) -> Option<String> {
    let count = unreadable.len();
    let mut names: Vec<&str> = unreadable.iter().take(MAX_NAMED).map(|object| object.key().path()).collect();
    let more = count.saturating_sub(MAX_NAMED);
    let more = (more > 0).then(|| format!("{more} more"));
    names.extend(more.as_deref());
    (count > 0).then(|| {
        format!("omitted because they cannot be read from the storage: {resource} {}", names.join(", "))
    })
}

/// Status 500 for an unreadable object.
pub(crate) fn unreadable_status(resource: &GroupResource, unreadable: &Unreadable) -> Status {
    status(resource, unreadable.key().name(), unreadable.key().path(), unreadable.reason())
}

/// Status 500 for a write that involves an unreadable object.
pub(crate) fn of_txn(error: &TxnError, resource: &GroupResource, name: &str) -> Status {
    status(resource, name, name, &error.to_string())
}
