//! AuditInit: every request has an id, the client's or a new one, and every response says it.

use http::Response;
use http::header::{HeaderName, HeaderValue};

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;

/// The header's name.
pub const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// See the module.
#[derive(Debug, Default)]
pub struct AuditInit;

impl Filter for AuditInit {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        x.audit_id = match x.parts.headers.get(AUDIT_ID) {
            Some(id) if !id.is_empty() => id.clone(),
            _ => new_id(),
        };
        let mut response = next.handle(x).await;
        // Moved: this filter is the outermost, and nobody asks for the id after it.
        let id = std::mem::replace(&mut x.audit_id, HeaderValue::from_static(""));
        response.headers_mut().entry(AUDIT_ID).or_insert(id);
        response
    }
}

fn new_id() -> HeaderValue {
    // The thread's generator: unpredictable, and without a system call per request.
    let id = uuid::Builder::from_random_bytes(rand::random()).into_uuid();
    let mut text = [0u8; uuid::fmt::Hyphenated::LENGTH];
    let text = id.hyphenated().encode_lower(&mut text);
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}
