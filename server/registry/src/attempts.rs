//! Limits on repeated attempts of a write that conflicts with concurrent writes, and the errors returned at the limits.

use std::sync::Arc;

use portico_machinery::status::Cause;
use portico_machinery::{GroupResource, Status};
use portico_store::Record;

/// Attempts of one write that conflicts with other writes.
///
/// Limit (Requests): 409, or 503 with `Retry-After` if the conflict is in an object that it depends on.
pub const MAX_WRITE_ATTEMPTS: usize = 256;
/// Restarts of a request because the definition of its kind changed.
///
/// Limit (Requests): 503 with `Retry-After`.
pub(crate) const MAX_DEFINITION_ATTEMPTS: usize = 8;

const DEFINITION_CHANGED: &str = "DefinitionChanged";

/// Record that a concurrent writer stored, from which the next attempt continues; `None` if the record has to be read.
pub(crate) type NewerRecord = Option<Arc<Record>>;

/// Status 409 for a write whose object changed during every attempt.
pub(crate) fn too_many_changes(resource: &GroupResource, name: &str) -> Box<Status> {
    let message = format!(
        "the object was modified {MAX_WRITE_ATTEMPTS} times while this request was processed; please try again"
    );
    Box::new(Status::conflict(resource, name, &message))
}

/// Status 503 for a write that conflicted in every attempt with changes of an object that it depends on.
pub fn too_busy(resource: &GroupResource, name: &str) -> Box<Status> {
    let message = format!(
        "{resource} {name:?} could not be written: a dependency was modified {MAX_WRITE_ATTEMPTS} times while \
         this request was processed"
    );
    Box::new(Status::unavailable(message).with_retry_after(1))
}

/// Status 503 for a write that was validated with a definition that has changed since.
pub(crate) fn definition_changed(resource: &GroupResource) -> Box<Status> {
    let message = format!("the definition of {resource} has changed while this request was processed");
    let cause =
        Cause { reason: DEFINITION_CHANGED.to_owned(), message: message.clone(), field: String::new() };
    Box::new(Status::unavailable(message).with_cause(cause).with_retry_after(1))
}

/// True if a request failed because the definition of its kind has changed. Nothing was written, so the request can be retried.
pub(crate) fn is_definition_changed(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == DEFINITION_CHANGED)
}
