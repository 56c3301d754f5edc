//! AuditInit: every request has an id, the client's or a new one, and every response says it.

use http::header::{HeaderName, HeaderValue};
use portico_kit::layer::AfterResponse;

use crate::request::{AuditId, Request, Response};

/// The header's name.
pub const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// See the module.
pub fn audit_init(request: &mut Request) -> AuditId {
    let id = match request.headers().get(AUDIT_ID) {
        Some(id) if !id.is_empty() => AuditId(id.clone()),
        _ => new_id(),
    };
    request.extensions_mut().insert(id.clone());
    id
}

impl AfterResponse<Response> for AuditId {
    fn after(self, mut response: Response) -> Response {
        response.headers_mut().entry(AUDIT_ID).or_insert(self.0);
        response
    }
}

fn new_id() -> AuditId {
    // The thread's generator: unpredictable, and without a system call per request.
    let id = uuid::Builder::from_random_bytes(rand::random()).into_uuid();
    let mut text = [0u8; uuid::fmt::Hyphenated::LENGTH];
    let text = id.hyphenated().encode_lower(&mut text);
    AuditId(HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("")))
}
