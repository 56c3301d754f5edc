//! Objects whose stored bytes cannot be read: what readers of them are answered.
//!
//! A list leaves them out and warns; everything about one of them alone answers 500 `StorageReadError`, as upstream does
//! (docs/internals/adr/0011).

use portico_machinery::status::{Cause, Details, Reason};
use portico_machinery::{GroupResource, Status};
use portico_store::{TxnError, Unreadable};

/// How many objects one warning names.
const MAX_NAMED: usize = 10;

/// 500: an object that exists and cannot be read. `key` is its path, where more is known of it than its name.
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

/// What a list that leaves these out warns of.
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

/// 500 of an object.
pub(crate) fn of(resource: &GroupResource, unreadable: &Unreadable) -> Status {
    status(resource, unreadable.key().name(), unreadable.key().path(), unreadable.reason())
}

/// 500 of a write that met an object that cannot be read.
pub(crate) fn of_txn(error: &TxnError, resource: &GroupResource, name: &str) -> Status {
    status(resource, name, name, &error.to_string())
}
