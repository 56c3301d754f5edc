//! Helpers for results of writes in which some errors are acceptable.

use portico_machinery::{Reason, Status};

/// Ignores errors with one of these reasons, for example because another client was faster or the object is gone.
pub(crate) fn ignore_reasons<T>(
    result: Result<T, Box<Status>>,
    ignored: &[Reason],
) -> Result<(), Box<Status>> {
    match result {
        Err(status) if ignored.contains(&status.reason()) => Ok(()),
        other => other.map(drop),
    }
}

/// Returns `None` and logs an error if the object cannot be read from storage, so that a server starts without it.
pub(crate) fn skip_unreadable<T>(result: Result<T, Box<Status>>) -> Result<Option<T>, Box<Status>> {
    match result {
        Err(status) if status.reason() == Reason::StorageReadError => {
            tracing::error!(error = %status, "system object is unreadable; delete or restore the object");
            Ok(None)
        }
        other => other.map(Some),
    }
}

/// Returns true if a write was refused because its namespace is being deleted.
pub(crate) fn is_namespace_terminating(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}
