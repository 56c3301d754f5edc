//! Errors of refused requests, with the messages of upstream's policies.

use portico_machinery::Status;
use portico_machinery::status::{Cause, Reason};

use crate::matching::{MatchTarget, Pair};

/// Returns 403 for the object of a request (upstream's `admission.NewForbidden`).
pub(super) fn forbidden(target: &MatchTarget<'_>, pair: Pair<'_>, why: &str) -> Status {
    let named = target.attributes.name;
    let of_object = pair.new.map(|object| [object.name(), object.generate_name()]).unwrap_or_default();
    let name = [named].into_iter().chain(of_object).find(|name| !name.is_empty()).unwrap_or("Unknown");
    Status::forbidden(&target.resource.group_resource(), name, why)
}

/// Returns the refusal of a validating policy with a reason; 422 if the reason has no specific code.
pub(super) fn of_validation(
    target: &MatchTarget<'_>,
    pair: Pair<'_>,
    message: &str,
    reason: &str,
) -> Box<Status> {
    let mut status = forbidden(target, pair, message);
    let reason = if reason.is_empty() { Reason::Invalid.as_str() } else { reason };
    reason.clone_into(&mut status.reason);
    status.code = match Reason::parse(reason) {
        known @ (Reason::Forbidden | Reason::Unauthorized | Reason::RequestEntityTooLarge) => known.code(),
        _ => Reason::Invalid.code(),
    };
    Box::new(status.with_cause(cause(message)))
}

/// Creates a cause that has only a message.
pub(super) fn cause(message: &str) -> Cause {
    Cause { message: message.to_owned(), ..Cause::default() }
}
