//! What a write came to, for who does not mind some of its refusals.

use portico_machinery::{Reason, Status};

/// A refusal for one of these reasons is fine: somebody else was faster, or the object is gone.
pub(crate) fn unless<T>(result: Result<T, Box<Status>>, fine: &[Reason]) -> Result<(), Box<Status>> {
    match result {
        Err(status) if fine.contains(&status.reason()) => Ok(()),
        other => other.map(drop),
    }
}

/// Passes over an object that cannot be read from the storage, and names it in the log: a server starts without it.
pub(crate) fn unless_unreadable<T>(result: Result<T, Box<Status>>) -> Result<Option<T>, Box<Status>> {
    match result {
        Err(status) if status.reason() == Reason::StorageReadError => {
            tracing::error!(error = %status, "system object is unreadable; delete or restore the object");
            Ok(None)
        }
        other => other.map(Some),
    }
}

/// Whether a write was refused because its namespace is being deleted.
pub(crate) fn is_namespace_going(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}
