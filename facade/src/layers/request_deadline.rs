//! RequestDeadline: `?timeout=` can only shorten `--request-timeout`; both count from arrival. The body of a request with a
//! deadline must not stall.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use portico_audit::Stage;
use portico_gostd::url::first_value;
use portico_kit::layer::LayerFuture;
use portico_machinery::Status;
use tower::Service;

use super::audit;
use crate::handler::Handler;
use crate::request::{Request, RequestView, Response};
use crate::respond;
use portico_auditor::{AuditedRequest, Auditor};

/// Deadlines of requests.
#[derive(Clone)]
pub struct RequestDeadlines {
    /// `--request-timeout`
    pub request_timeout: Duration,
    /// `--stalled-read-timeout`
    pub stalled_read: Duration,
    /// Records refusals.
    pub auditor: Option<Arc<Auditor>>,
}

/// Layer that sets the deadline of a request.
#[derive(Clone)]
pub struct RequestDeadline<S> {
    deadlines: RequestDeadlines,
    inner: S,
}

impl<S> RequestDeadline<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, deadlines: RequestDeadlines) -> Self {
        Self { deadlines, inner }
    }
}

impl<S: Handler> Service<Request> for RequestDeadline<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = LayerFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        match self.deadlines.set(&mut request) {
            Ok(()) => LayerFuture::from_inner(self.inner.call(request)),
            Err(refused) => LayerFuture::from_boxed(async move {
                let (refusal, audited) = *refused;
                if let Some(audited) = audited {
                    audited.process(Stage::ResponseStarted).await;
                }
                Ok(refusal)
            }),
        }
    }
}

impl RequestDeadlines {
    /// Sets the deadline of a request that has one.
    ///
    /// # Errors
    /// The refusal of an invalid timeout, and its audit event.
    fn set(&self, request: &mut Request) -> Result<(), Box<(Response, Option<AuditedRequest>)>> {
        if request.target().long_running {
            return Ok(());
        }
        let requested = requested_timeout(request.query()).map_err(|error| {
            let message = format!("invalid timeout specified in the request URL - {error}");
            let refusal = respond::status(request, &Status::bad_request(message));
            let audited = audit::refusal_event(self.auditor.as_ref(), request, &refusal);
            Box::new((refusal, audited))
        })?;
        let shorter = requested.filter(|t| !t.is_zero() && *t < self.request_timeout);
        let deadline = request.received() + shorter.unwrap_or(self.request_timeout);
        let _ = request.record().deadline.set(deadline);
        request.body_mut().limit_pause(self.stalled_read);
        Ok(())
    }
}

/// Timeout that the client requests; zero means the default.
fn requested_timeout(query: &str) -> Result<Option<Duration>, String> {
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
