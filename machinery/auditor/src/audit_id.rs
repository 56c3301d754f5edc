//! Audit ID of a request: taken from the client's header, or generated.

use http::header::{HeaderName, HeaderValue};

/// Header with the audit ID in requests and responses; gRPC metadata has the same name.
pub const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Generates an audit ID for a request without one.
#[must_use]
pub fn new_audit_id() -> HeaderValue {
    // The generator of the thread is unpredictable and needs no system call per request.
    let id = uuid::Builder::from_random_bytes(rand::random()).into_uuid();
    let mut text = [0u8; uuid::fmt::Hyphenated::LENGTH];
    let text = id.hyphenated().encode_lower(&mut text);
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}
