//! Impersonation: replaces the caller when it may, and takes the asking headers off.

use std::sync::Arc;

use http::header::HeaderName;
use portico_auth::impersonate::{ImpersonationRequest, consumes_header, impersonate};
use portico_kit::metrics::Histogram;
use portico_machinery::Status;
use tower_http::validate_request::ValidateRequest;

use super::header_values::Headers;
use crate::body::Body;
use crate::request::{Caller, Request, RequestView, Response};
use crate::respond;

/// See the module.
#[derive(Clone)]
pub struct Impersonation {
    /// `apiserver_request_filter_duration_seconds{filter="impersonation"}`
    pub duration: Histogram,
}

impl ValidateRequest<Body> for Impersonation {
    type ResponseBody = Body;

    fn validate(&mut self, request: &mut Request) -> Result<(), Response> {
        let asking: Vec<HeaderName> =
            request.headers().keys().filter(|name| consumes_header(name.as_str())).cloned().collect();
        if asking.is_empty() {
            return Ok(());
        }
        let begin = std::time::Instant::now();
        let decided = decide(request);
        for name in asking {
            request.headers_mut().remove(&name);
        }
        self.duration.observe(begin.elapsed().as_secs_f64());
        if let Some(caller) = decided.map_err(|status| respond::forbidden(request, &status))? {
            request.extensions_mut().insert(caller);
        }
        Ok(())
    }
}

fn decide(request: &Request) -> Result<Option<Caller>, Box<Status>> {
    let Some(wanted) = ImpersonationRequest::from_headers(&Headers(request.headers()))? else {
        return Ok(None);
    };
    let authorizer = &request.in_force().authorizer;
    let impersonated = impersonate(authorizer, &request.user(), request.info(), &wanted)?;
    Ok(Some(Caller(Arc::new(impersonated.user))))
}
