//! The id of a request: the client's, or a new one.

use http::header::{HeaderName, HeaderValue};

/// The header that has it, in requests and responses; metadata of the same name in calls.
pub const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// An id for a request that has none.
#[must_use]
pub fn new_audit_id() -> HeaderValue {
    // The thread's generator: unpredictable, and without a system call per request.
    let id = uuid::Builder::from_random_bytes(rand::random()).into_uuid();
    let mut text = [0u8; uuid::fmt::Hyphenated::LENGTH];
    let text = id.hyphenated().encode_lower(&mut text);
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}
