//! `Status`: the response for every error, with upstream's constructors.

mod protobuf;

use std::fmt;

use indexmap::IndexSet;
use portico_gostd::strconv::quote;
use serde::{Deserialize, Deserializer, Serialize};

pub use crate::cause::Cause;
use crate::field;
use crate::gvk::{GroupKind, GroupResource};

/// Maximum number of validation errors that a response lists.
///
/// A body of 3 MiB can have hundreds of thousands of invalid fields. kube-apiserver has no limit.
///
/// Limit (Requests): the rest is counted.
pub const MAX_FIELD_ERRORS: usize = 1_000;
/// Approximate maximum bytes of validation errors that a response lists.
///
/// A Status must fit into one gRPC message (4 MiB), which contains each text two times. JSON needs up to six bytes per byte.
///
/// Limit (Requests, bytes): the rest is counted.
pub const MAX_CAUSES_BYTES: usize = 320 * 1024;

/// Machine-readable reasons with their spelling in the API. Clients match on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Missing reason.
    Unknown,
    /// 400
    BadRequest,
    /// 401
    Unauthorized,
    /// 403
    Forbidden,
    /// 404
    NotFound,
    /// 405
    MethodNotAllowed,
    /// 406
    NotAcceptable,
    /// 409, the name is taken
    AlreadyExists,
    /// 409, revision or precondition
    Conflict,
    /// 410, for old clients
    Gone,
    /// 410, revision or continue token too old
    Expired,
    /// 413
    RequestEntityTooLarge,
    /// 415
    UnsupportedMediaType,
    /// 422
    Invalid,
    /// 429
    TooManyRequests,
    /// 500
    InternalError,
    /// 500, stored data cannot be read
    StorageReadError,
    /// 500, the operation may be retried
    ServerTimeout,
    /// 503
    ServiceUnavailable,
    /// 504
    Timeout,
}

impl Reason {
    const ALL: [(Self, &'static str, u16); 20] = [
        (Self::Unknown, "", 500),
        (Self::BadRequest, "BadRequest", 400),
        (Self::Unauthorized, "Unauthorized", 401),
        (Self::Forbidden, "Forbidden", 403),
        (Self::NotFound, "NotFound", 404),
        (Self::MethodNotAllowed, "MethodNotAllowed", 405),
        (Self::NotAcceptable, "NotAcceptable", 406),
        (Self::AlreadyExists, "AlreadyExists", 409),
        (Self::Conflict, "Conflict", 409),
        (Self::Gone, "Gone", 410),
        (Self::Expired, "Expired", 410),
        (Self::RequestEntityTooLarge, "RequestEntityTooLarge", 413),
        (Self::UnsupportedMediaType, "UnsupportedMediaType", 415),
        (Self::Invalid, "Invalid", 422),
        (Self::TooManyRequests, "TooManyRequests", 429),
        (Self::InternalError, "InternalError", 500),
        (Self::StorageReadError, "StorageReadError", 500),
        (Self::ServerTimeout, "ServerTimeout", 500),
        (Self::ServiceUnavailable, "ServiceUnavailable", 503),
        (Self::Timeout, "Timeout", 504),
    ];

    /// Returns the API spelling; empty for [`Reason::Unknown`].
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Returns the HTTP status code of the reason.
    #[must_use]
    pub fn code(self) -> u16 {
        Self::ALL[self as usize].2
    }

    /// Parses the API spelling. Returns [`Reason::Unknown`] if it is unknown.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self::ALL.iter().find(|(_, name, _)| *name == text).map_or(Self::Unknown, |(reason, ..)| *reason)
    }
}

/// `details` of a Status. `kind` is the plural resource in most errors, and the kind in Invalid and precondition conflicts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Details {
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Group of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Plural resource or kind of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// UID of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Individual causes of the error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// Seconds after which the client may retry; also sent as `Retry-After`.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if takes a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// `metadata` of a Status. Portico only sets `continue` (expired list continuations); webhooks can set the other fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ListMeta {
    /// Deprecated `selfLink`.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_zero")]
    pub self_link: String,
    /// Revision of a list.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_zero")]
    pub resource_version: String,
    /// Continue token that resumes an expired list.
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty", deserialize_with = "or_zero")]
    pub continue_token: String,
    /// Number of items that the list omits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_item_count: Option<i64>,
    /// Shard of the list, if it is sharded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard_info: Option<ShardInfo>,
}

/// Decodes a string, where null counts as absent, as in Go.
fn or_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Shard of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShardInfo {
    /// Selector of the shard.
    pub selector: String,
}

/// Kubernetes `v1` Status, failure or success. Fields are in wire order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    #[serde(default = "kind_status", skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(rename = "apiVersion", default = "version_v1", skip_serializing_if = "String::is_empty")]
    api_version: String,
    /// List metadata.
    #[serde(default)]
    pub metadata: ListMeta,
    /// `Failure` or `Success`.
    #[serde(default)]
    pub status: String,
    /// Human-readable message, which kubectl prints.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Spelling of the reason; a string, so that unknown reasons of backends are preserved.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Details of the error; printed as `{}` if present and empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
    /// HTTP status code; absent in successes.
    #[serde(default, skip_serializing_if = "is_zero_code")]
    pub code: u16,
    /// Warnings that are sent in headers and are not part of the document.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if takes a reference")]
fn is_zero_code(n: &u16) -> bool {
    *n == 0
}

fn kind_status() -> String {
    "Status".to_owned()
}

fn version_v1() -> String {
    "v1".to_owned()
}

impl Status {
    /// Creates a failure with this reason and its default code, without details.
    pub fn failure(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            kind: kind_status(),
            api_version: version_v1(),
            metadata: ListMeta::default(),
            status: "Failure".to_owned(),
            message: message.into(),
            reason: reason.as_str().to_owned(),
            details: None,
            code: reason.code(),
            warnings: Vec::new(),
        }
    }

    /// Creates a success, as DELETE returns it.
    #[must_use]
    pub fn success(details: Option<Details>) -> Self {
        let mut status = Self::failure(Reason::Unknown, "");
        status.status = "Success".to_owned();
        status.details = details;
        status.code = 0;
        status
    }

    /// Sets the details.
    #[must_use]
    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(details);
        self
    }

    /// Sets `retryAfterSeconds`.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// Prepends warnings.
    #[must_use]
    pub fn with_warnings(mut self: Box<Self>, mut first: Vec<String>) -> Box<Self> {
        first.append(&mut self.warnings);
        self.warnings = first;
        self
    }

    /// Adds a cause.
    #[must_use]
    pub fn with_cause(mut self, cause: Cause) -> Self {
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// Creates a 400 response with this message.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(Reason::BadRequest, message)
    }

    /// Creates a 401 response with upstream's message.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::failure(Reason::Unauthorized, "Unauthorized")
    }

    /// Creates a 403 response for an object, or for a collection if the name is empty.
    #[must_use]
    pub fn forbidden(resource: &GroupResource, name: &str, reason: &str) -> Self {
        let message = match (resource.resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {reason}"),
            (false, true) => format!("{resource} is forbidden: {reason}"),
            (false, false) => format!("{resource} {} is forbidden: {reason}", quote(name)),
        };
        Self::failure(Reason::Forbidden, message).with_details(details_of(resource, name))
    }

    /// Creates a 404 response for an object.
    #[must_use]
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::failure(Reason::NotFound, format!("{resource} {} not found", quote(name)))
            .with_details(details_of(resource, name))
    }

    /// Creates a 404 response for a path in an installed group version.
    #[must_use]
    pub fn route_not_found() -> Self {
        Self::failure(Reason::NotFound, "the server could not find the requested resource")
            .with_details(Details::default())
    }

    /// Creates a 405 response for a route.
    #[must_use]
    pub fn method_not_allowed() -> Self {
        Self::failure(
            Reason::MethodNotAllowed,
            "the server does not allow this method on the requested resource",
        )
        .with_details(Details::default())
    }

    /// Creates a 405 response for a verb that the resource does not support.
    #[must_use]
    pub fn method_not_supported(resource: &GroupResource, verb: &str) -> Self {
        Self::failure(
            Reason::MethodNotAllowed,
            format!("{verb} is not supported on resources of kind \"{resource}\""),
        )
        .with_details(details_of(resource, ""))
    }

    /// Creates a 406 response with the supported media types.
    #[must_use]
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        Self::failure(
            Reason::NotAcceptable,
            format!("only the following media types are accepted: {}", accepted.join(", ")),
        )
    }

    /// Creates a 406 response of a route, before its handler negotiates.
    #[must_use]
    pub fn no_acceptable_representation(available: &[&str]) -> Self {
        let available = available.join(", ");
        let message = format!("406: Not Acceptable\n\nAvailable representations: {available}");
        Self::failure(Reason::NotAcceptable, message).with_details(Details::default())
    }

    /// Creates a 409 response: the name is in use.
    #[must_use]
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        Self::failure(Reason::AlreadyExists, format!("{resource} {} already exists", quote(name)))
            .with_details(details_of(resource, name))
    }

    /// Creates a 409 response: a concurrent update was committed first, or a precondition failed.
    #[must_use]
    pub fn conflict(resource: &GroupResource, name: &str, reason: &str) -> Self {
        Self::failure(
            Reason::Conflict,
            format!("Operation cannot be fulfilled on {resource} {}: {reason}", quote(name)),
        )
        .with_details(details_of(resource, name))
    }

    /// Creates a 410 response: the history no longer contains a revision, or a token has expired.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(Reason::Expired, message)
    }

    /// Creates a 413 response with the limit.
    #[must_use]
    pub fn too_large(limit: usize) -> Self {
        Self::failure(Reason::RequestEntityTooLarge, format!("Request entity too large: limit is {limit}"))
    }

    /// Creates a 415 response for a body of an unsupported media type.
    #[must_use]
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        Self::failure(
            Reason::UnsupportedMediaType,
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            ),
        )
    }

    /// Creates a 422 response with one cause per field error. Identical texts occur once in the message. If there are more errors
    /// than [`MAX_FIELD_ERRORS`], or very long ones, lists the first ones and the number of the others.
    #[must_use]
    pub fn invalid(kind: &GroupKind, name: &str, errors: &[field::Error]) -> Self {
        let (errors, more) = errors.split_at(listed_count(errors));
        let mut texts: IndexSet<String> = errors.iter().map(ToString::to_string).collect();
        if !more.is_empty() {
            texts.insert(format!("and {} more", more.len()));
        }
        let texts: Vec<String> = texts.into_iter().collect();
        let list = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        Self::failure(Reason::Invalid, format!("{kind} {} is invalid: {list}", quote(name))).with_details(
            Details {
                name: name.to_owned(),
                group: kind.group.clone(),
                kind: kind.kind.clone(),
                causes: errors.iter().map(field::Error::cause).collect(),
                ..Details::default()
            },
        )
    }

    /// Creates a 429 response with the time after which the client may retry.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self::failure(Reason::TooManyRequests, message).with_retry_after(retry_after_seconds)
    }

    /// Creates a 500 response: an error of the server, not of the request.
    pub fn internal(error: impl fmt::Display) -> Self {
        let error = error.to_string();
        Self::failure(Reason::InternalError, format!("Internal error occurred: {error}"))
            .with_cause(Cause { message: error, ..Cause::default() })
    }

    /// Creates a 503 response with this message.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::failure(Reason::ServiceUnavailable, message)
    }

    /// Creates a 504 response with upstream's prefix.
    pub fn timeout(message: impl fmt::Display) -> Self {
        Self::failure(Reason::Timeout, format!("Timeout: {message}")).with_details(Details::default())
    }

    /// True for a failure.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.status != "Success"
    }

    /// Returns the reason, or [`Reason::Unknown`] if it is not a known one.
    #[must_use]
    pub fn reason(&self) -> Reason {
        Reason::parse(&self.reason)
    }

    /// Returns `details.retryAfterSeconds`, or 0 if it is absent.
    #[must_use]
    pub fn retry_after_seconds(&self) -> u32 {
        self.details.as_ref().map_or(0, |d| d.retry_after_seconds)
    }

    /// Encodes the Status as compact JSON with the trailing newline of upstream's encoder.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        // A struct of strings and numbers can always be encoded; otherwise, the empty body would show the bug.
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Encodes the Status without kind, version and newline, as in the streams of commands.
    #[must_use]
    pub fn to_untyped_json(&self) -> Vec<u8> {
        let mut bytes = Self { kind: String::new(), api_version: String::new(), ..self.clone() }.to_json();
        bytes.pop();
        bytes
    }

    /// Decodes a Status. Returns `None` if the bytes are not a Status.
    #[must_use]
    pub fn from_json(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Self>(bytes).ok().filter(|s| s.kind == "Status")
    }
}

fn details_of(resource: &GroupResource, name: &str) -> Details {
    Details {
        name: name.to_owned(),
        group: resource.group.clone(),
        kind: resource.resource.clone(),
        ..Details::default()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

/// Returns the number of errors that are listed.
fn listed_count(errors: &[field::Error]) -> usize {
    let mut bytes = 0;
    let fits = |error: &&field::Error| {
        let fits = bytes < MAX_CAUSES_BYTES;
        bytes += error.body.len() + error.path.as_str().len();
        fits
    };
    errors.iter().take(MAX_FIELD_ERRORS).take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_index_their_own_row() {
        for (reason, text, code) in Reason::ALL {
            assert_eq!((reason.as_str(), reason.code()), (text, code));
            assert_eq!(Reason::parse(text), reason);
        }
    }

    #[test]
    fn not_found_is_encoded_as_upstream_does() {
        let status = Status::not_found(&GroupResource::new("apps", "deployments"), "x");
        assert_eq!(
            String::from_utf8(status.to_json()).unwrap(),
            concat!(
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
                r#""message":"deployments.apps \"x\" not found","reason":"NotFound","#,
                r#""details":{"name":"x","group":"apps","kind":"deployments"},"code":404}"#,
                "\n"
            )
        );
        assert_eq!(Status::from_json(&status.to_json()), Some(status));
    }

    #[test]
    fn invalid_lists_identical_texts_once_and_brackets_several() {
        let kind = GroupKind { group: String::new(), kind: "Service".into() };
        let path = field::Path::new("spec.a");
        let one = field::Error::required(&path, "");
        let two = field::Error::required(&field::Path::new("spec.b"), "");
        let status = Status::invalid(&kind, "n", &[one.clone(), one.clone()]);
        assert_eq!(status.message, r#"Service "n" is invalid: spec.a: Required value"#);
        let status = Status::invalid(&kind, "n", &[one, two]);
        assert_eq!(
            status.message,
            r#"Service "n" is invalid: [spec.a: Required value, spec.b: Required value]"#
        );
        assert_eq!(status.details.unwrap().causes.len(), 2);
    }

    #[test]
    fn invalid_lists_the_first_of_very_many_errors_and_how_many_follow() {
        let kind = GroupKind { group: String::new(), kind: "Service".into() };
        let error = |at: usize| field::Error::required(&field::Path::new(format!("spec.a{at}")), "");
        let errors: Vec<_> = (0..MAX_FIELD_ERRORS + 7).map(error).collect();
        let status = Status::invalid(&kind, "n", &errors);
        assert!(status.message.ends_with("spec.a999: Required value, and 7 more]"), "{}", status.message);
        assert_eq!(status.details.unwrap().causes.len(), MAX_FIELD_ERRORS);
    }
}
