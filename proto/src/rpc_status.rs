//! Conversion between Kubernetes Status and gRPC status: canonical codes with `google.rpc.Status` details.

use std::collections::HashMap;
use std::time::Duration;

use portico_machinery::status::{Cause, Details};
use portico_machinery::{Reason, Status};
use tonic::Code;
use tonic_types::{ErrorDetails, StatusExt};

/// Size of the details of a gRPC error.
///
/// Clients hang on trailers above 16 KiB.
///
/// Limit (Requests, bytes): the details are truncated.
pub const MAX_DETAIL_BYTES: usize = 8 * 1024;
/// Upper bound in bytes of the encoding overhead of one field violation.
const VIOLATION_OVERHEAD: usize = 32;
/// Domain of the `ErrorInfo` of Portico.
pub const DOMAIN: &str = "portico.dev";

/// Returns the canonical code of a Kubernetes reason; of the HTTP code, if the reason is unknown.
#[must_use]
pub fn code_of(status: &Status) -> Code {
    match status.reason() {
        Reason::BadRequest
        | Reason::Invalid
        | Reason::RequestEntityTooLarge
        | Reason::UnsupportedMediaType
        | Reason::NotAcceptable => Code::InvalidArgument,
        Reason::Unauthorized => Code::Unauthenticated,
        Reason::Forbidden => Code::PermissionDenied,
        Reason::NotFound => Code::NotFound,
        Reason::MethodNotAllowed => Code::Unimplemented,
        Reason::AlreadyExists => Code::AlreadyExists,
        Reason::Conflict => Code::Aborted,
        Reason::Gone | Reason::Expired => Code::OutOfRange,
        Reason::TooManyRequests => Code::ResourceExhausted,
        Reason::ServerTimeout | Reason::ServiceUnavailable => Code::Unavailable,
        Reason::Timeout => Code::DeadlineExceeded,
        Reason::StorageReadError => Code::DataLoss,
        Reason::InternalError => Code::Internal,
        Reason::Unknown => code_of_http(status.code),
    }
}

fn code_of_http(code: u16) -> Code {
    match code {
        400..=499 => Code::FailedPrecondition,
        503 => Code::Unavailable,
        507 => Code::ResourceExhausted,
        _ => Code::Internal,
    }
}

/// Converts a Status for a native caller: code, message, BadRequest, ErrorInfo and RetryInfo.
#[must_use]
pub fn to_rpc(status: &Status) -> tonic::Status {
    let mut details = ErrorDetails::new();
    let reason = if status.reason.is_empty() { "Unknown" } else { &status.reason };
    details.set_error_info(reason, DOMAIN, error_metadata(status));
    let mut spent = 0;
    for cause in status.details.iter().flat_map(|d| &d.causes) {
        spent += cause.field.len() + cause.message.len() + VIOLATION_OVERHEAD;
        if spent > MAX_DETAIL_BYTES / 2 {
            break;
        }
        details.add_bad_request_violation(&cause.field, &cause.message);
    }
    if status.retry_after_seconds() > 0 {
        details.set_retry_info(Some(Duration::from_secs(u64::from(status.retry_after_seconds()))));
    }
    tonic::Status::with_error_details(
        code_of(status),
        truncate(&status.message, MAX_DETAIL_BYTES / 4),
        details,
    )
}

fn error_metadata(status: &Status) -> HashMap<String, String> {
    let mut facts = HashMap::from([("code".to_owned(), status.code.to_string())]);
    if let Some(details) = &status.details {
        for (key, value) in [("name", &details.name), ("group", &details.group), ("kind", &details.kind)] {
            if !value.is_empty() {
                facts.insert(key.to_owned(), value.clone());
            }
        }
    }
    facts
}

fn truncate(text: &str, limit: usize) -> String {
    let end = (0..=text.len().min(limit)).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
    text[..end].to_owned()
}

/// Converts a gRPC status to a Kubernetes Status: the original of [`to_rpc`], or the nearest equivalent of other statuses.
#[must_use]
pub fn from_rpc(rpc: &tonic::Status) -> Status {
    let details = rpc.get_error_details();
    let error_info = details.error_info().filter(|i| i.domain == DOMAIN);
    let reason = error_info.map_or_else(|| foreign_reason(rpc), |i| Reason::parse(&i.reason));
    let mut status = Status::failure(reason, rpc.message());
    if let Some(info) = error_info {
        if let Some(code) = info.metadata.get("code").and_then(|c| c.parse().ok()) {
            status.code = code;
        }
        let fact = |key: &str| info.metadata.get(key).cloned().unwrap_or_default();
        let (name, group, kind) = (fact("name"), fact("group"), fact("kind"));
        status.details = Some(Details { name, group, kind, ..Details::default() });
    }
    for violation in details.bad_request().iter().flat_map(|b| &b.field_violations) {
        let (field, message) = (violation.field.clone(), violation.description.clone());
        status = status.with_cause(Cause { field, message, ..Cause::default() });
    }
    match details.retry_info().and_then(|r| r.retry_delay) {
        Some(delay) => status.with_retry_after(u32::try_from(delay.as_secs().max(1)).unwrap_or(u32::MAX)),
        None => status,
    }
}

/// Message of tonic for a message above the size limit, which it returns with the code `OUT_OF_RANGE`.
const TOO_LARGE_MESSAGE: &str = "message length too large";

/// Returns the reason of a status that [`to_rpc`] did not create.
fn foreign_reason(rpc: &tonic::Status) -> Reason {
    let is_too_large = rpc.code() == Code::OutOfRange && rpc.message().contains(TOO_LARGE_MESSAGE);
    if is_too_large { Reason::InternalError } else { reason_of(rpc.code()) }
}

fn reason_of(code: Code) -> Reason {
    match code {
        Code::InvalidArgument => Reason::BadRequest,
        Code::Unauthenticated => Reason::Unauthorized,
        Code::PermissionDenied => Reason::Forbidden,
        Code::NotFound => Reason::NotFound,
        Code::AlreadyExists => Reason::AlreadyExists,
        Code::Aborted => Reason::Conflict,
        Code::OutOfRange => Reason::Expired,
        Code::ResourceExhausted => Reason::TooManyRequests,
        Code::Unavailable => Reason::ServiceUnavailable,
        Code::DeadlineExceeded | Code::Cancelled => Reason::Timeout,
        _ => Reason::InternalError,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portico_machinery::field::{Error, Path};
    use portico_machinery::{GroupKind, GroupResource};

    #[test]
    fn a_message_that_is_too_large_is_an_internal_error() {
        let texts = ["Error, encoded message length too large: found 5 bytes, the limit is: 4 bytes"];
        for text in texts {
            assert_eq!(from_rpc(&tonic::Status::out_of_range(text)).code, 500);
        }
        assert_eq!(from_rpc(&tonic::Status::out_of_range("too old resource version")).code, 410);
    }

    #[test]
    fn refusals_keep_reason_code_fields_and_retry() {
        let kind = GroupKind { group: "g".into(), kind: "K".into() };
        let statuses = [
            Status::invalid(&kind, "n", &[Error::required(&Path::new("spec.a"), "")]),
            Status::not_found(&GroupResource::new("g", "ks"), "n"),
            Status::too_many_requests("later", 7),
            Status::expired("old"),
        ];
        for status in statuses {
            let rpc = to_rpc(&status);
            let back = from_rpc(&rpc);
            assert_eq!(
                (back.reason(), back.code, &back.message),
                (status.reason(), status.code, &status.message)
            );
            assert_eq!(back.retry_after_seconds(), status.retry_after_seconds());
        }
    }

    #[test]
    fn details_are_truncated_for_any_status() {
        let kind = GroupKind { group: "g".into(), kind: "K".into() };
        let errors: Vec<_> =
            (0..5000).map(|i| Error::required(&Path::new(format!("spec.a[{i}]")), "x")).collect();
        let rpc = to_rpc(&Status::invalid(&kind, "n", &errors));
        assert!(rpc.details().len() + rpc.message().len() <= MAX_DETAIL_BYTES);
    }
}
