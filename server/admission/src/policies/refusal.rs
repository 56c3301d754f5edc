//! Errors of refused requests, with the messages of upstream's policies.

use portico_machinery::Status;
use portico_machinery::status::{Cause, Reason};

use crate::matching::{MatchTarget, ObjectPair};

/// Returns 403 for the object of a request (upstream's `admission.NewForbidden`).
pub(super) fn forbidden(target: &MatchTarget<'_>, pair: ObjectPair<'_>, message: &str) -> Status {
    let request_name = target.attributes.name;
    let of_object = pair.new.map(|object| [object.name(), object.generate_name()]).unwrap_or_default();
    let name = [request_name].into_iter().chain(of_object).find(|name| !name.is_empty()).unwrap_or("Unknown");
    Status::forbidden(&target.resource.group_resource(), name, message)
}

/// Returns the refusal of a validating policy with a reason; 422 if the reason has no specific code.
pub(super) fn validation_failure(
    target: &MatchTarget<'_>,
    pair: ObjectPair<'_>,
    message: &str,
    reason: &str,
) -> Box<Status> {
    let mut status = forbidden(target, pair, message);
    let reason = if reason.is_empty() { Reason::Invalid.as_str() } else { reason };
    reason.clone_into(&mut status.reason);
    status.code = match Reason::parse(reason) {
        reason @ (Reason::Forbidden | Reason::Unauthorized | Reason::RequestEntityTooLarge) => reason.code(),
        _ => Reason::Invalid.code(),
    };
    Box::new(status.with_cause(cause(message)))
}

/// Creates a cause that has only a message.
pub(super) fn cause(message: &str) -> Cause {
    Cause { message: message.to_owned(), ..Cause::default() }
}
