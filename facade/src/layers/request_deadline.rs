//! RequestDeadline: `?timeout=` can only shorten `--request-timeout`; both count from arrival. Bodies of requests with a
//! deadline must not stall either.

use std::sync::Arc;
use std::time::Duration;

use portico_audit::Stage;
use portico_gostd::url::first_value;
use portico_machinery::Status;
use tower_http::validate_request::ValidateRequest;

use super::audit;
use crate::body::Body;
use crate::request::{Request, RequestView, Response};
use crate::respond;
use portico_auditor::Auditor;

/// See the module.
#[derive(Clone)]
pub struct RequestDeadline {
    /// `--request-timeout`
    pub request_timeout: Duration,
    /// `--stalled-read-timeout`
    pub stalled_read: Duration,
    /// What records refusals.
    pub auditor: Option<Arc<Auditor>>,
}

impl ValidateRequest<Body> for RequestDeadline {
    type ResponseBody = Body;

    fn validate(&mut self, request: &mut Request) -> Result<(), Response> {
        if request.target().long_running {
            return Ok(());
        }
        let asked = asked(request.query()).map_err(|error| {
            let message = format!("invalid timeout specified in the request URL - {error}");
            let refusal = respond::status(request, &Status::bad_request(message));
            if let Some(audited) = audit::refused(self.auditor.as_ref(), request, &refusal) {
                audited.hand_over(Stage::ResponseStarted);
            }
            refusal
        })?;
        let shorter = asked.filter(|t| !t.is_zero() && *t < self.request_timeout);
        let deadline = request.received() + shorter.unwrap_or(self.request_timeout);
        let _ = request.record().deadline.set(deadline);
        request.body_mut().pace(self.stalled_read);
        Ok(())
    }
}

/// The client's own timeout; zero stands for everything that means "no shorter than usual".
fn asked(query: &str) -> Result<Option<Duration>, String> {
    match first_value(query, "timeout").as_deref() {
        None | Some("") => Ok(None),
        Some(text) => match text.strip_prefix('-') {
            Some(negative) => {
                portico_gostd::time::parse_duration(negative).map(|_| None).map_err(|e| e.to_string())
            }
            None => portico_gostd::time::parse_duration(text).map(Some).map_err(|e| e.to_string()),
        },
    }
}
