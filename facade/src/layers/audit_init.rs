//! AuditInit: gives each request an ID, the client's or a new one, and each response a header with it.

use portico_auditor::{AUDIT_ID, new_audit_id};
use portico_kit::layer::ResponseTransform;

use crate::request::{AuditId, Request, Response};

/// Sets the audit ID of a request.
pub fn audit_init(request: &mut Request) -> AuditId {
    let id = match request.headers().get(AUDIT_ID) {
        Some(id) if !id.is_empty() => AuditId(id.clone()),
        _ => AuditId(new_audit_id()),
    };
    request.extensions_mut().insert(id.clone());
    id
}

impl ResponseTransform<Response> for AuditId {
    fn apply(self, mut response: Response) -> Response {
        response.headers_mut().entry(AUDIT_ID).or_insert(self.0);
        response
    }
}
