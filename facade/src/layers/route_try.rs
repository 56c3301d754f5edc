//! Request traces (`portico route try`): on request, the response is replaced by a report on the stages of the request.
//!
//! The request passes the same layers as any other one. Unless it is to be sent, a write does not reach its handler. The
//! caller, before impersonation, needs permission to `get` [`PERMISSION`]: a trace contains addresses, rules and groups.

mod report;

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::Method;
use http::header::{HeaderName, HeaderValue, UPGRADE};
use portico_auth::authz::Decider;
use portico_auth::{Authorizer, Decision, Verdict, forbidden};
use portico_kit::layer::Step;
use portico_kit::walk::Walk;
use portico_machinery::{Attributes, RequestInfo, Status};
use tower::Service;

use super::impersonation::described;
use crate::handler::{Answer, Handler};
use crate::request::{Request, RequestView, Response};
use crate::respond;
use report::{Read, Report};

/// Header that requests a trace: `walk`, or `send` for a write that is to be executed. The response with a trace has it as well.
pub const ROUTE_TRY: HeaderName = HeaderName::from_static("portico-route-try");
/// Path that the caller must be permitted to get.
pub const PERMISSION: &str = "/portico/route-try";

/// Settings of the layer.
#[derive(Clone)]
pub struct RouteTries {
    /// Decides if objects are needed for a decision.
    pub decider: Arc<dyn Decider>,
    /// Name of this facade.
    pub facade: String,
}

/// Service of the layer that traces requests.
#[derive(Clone)]
pub struct RouteTry<S> {
    tries: RouteTries,
    inner: S,
}

impl<S> RouteTry<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, tries: RouteTries) -> Self {
        Self { tries, inner }
    }
}

impl<S: Handler> Service<Request> for RouteTry<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = Step<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        if !request.headers().contains_key(ROUTE_TRY) {
            return Step::passed(self.inner.call(request));
        }
        let (tries, inner) = (self.tries.clone(), self.inner.clone());
        Step::waiting(tries.walked(request, inner))
    }
}

impl RouteTries {
    async fn walked<S: Handler>(self, mut request: Request, mut inner: S) -> Answer {
        if let Err(refusal) = self.allowed(&request).await {
            if let Some(audited) = request.record().audited() {
                audited.set_decision(Some((false, &refusal.message)));
            }
            return Ok(respond::forbidden(&request, &refusal));
        }
        let asked = request.headers_mut().remove(ROUTE_TRY);
        let sends = match sends(&request, asked.as_ref()) {
            Ok(sends) => sends,
            Err(refusal) => return Ok(respond::status(&request, &refusal)),
        };
        let walk = Arc::new(Walk::new(request.received(), sends));
        let record = request.record();
        self.note_begin(&walk, &request, record.authentication_took.get().copied());
        // Only this layer sets it.
        let _ = record.walk.set(Arc::clone(&walk));
        let audited = record.audited().cloned();
        let report = Report::of(&request);
        let response = inner.call(request).await?;
        let (head, body) = response.into_parts();
        let fails = head.status.is_client_error() || head.status.is_server_error();
        if !walk.is_stopped() {
            walk.answered(!fails, head.status.to_string());
        }
        let begin = Instant::now();
        let read = Read::whole(body).await;
        if !walk.is_stopped() && !fails {
            read.note(&walk, begin);
        }
        if let Some(audited) = audited {
            audited.annotate([("portico.dev/route-try", if walk.is_sent() { "sent" } else { "not sent" })]);
        }
        let mut response = report.response(head, &read, &walk);
        response.headers_mut().insert(ROUTE_TRY, HeaderValue::from_static("walk"));
        Ok(response)
    }

    /// Checks that the caller may see traces.
    async fn allowed(&self, request: &Request) -> Result<(), Box<Status>> {
        let info = RequestInfo::parse("GET", PERMISSION, "").unwrap_or_default();
        let attributes = Attributes::new(request.user(), info);
        let mut decision = request.in_force().authorizer.authorize(&attributes);
        if decision.verdict == Verdict::Ask {
            decision = self
                .decider
                .decide(&attributes)
                .await
                .unwrap_or_else(|| Decision::deny("no authorizer could be reached"));
        }
        if decision.allowed() { Ok(()) } else { Err(Box::new(forbidden(&attributes, &decision.reason))) }
    }

    /// Adds the stages before this layer to the trace.
    fn note_begin(&self, walk: &Walk, request: &Request, authentication: Option<Duration>) {
        let protocol = if request.is_http2() { "HTTP/2" } else { "HTTP/1.1" };
        let peer = request.connection().peer;
        walk.took("listener", Duration::ZERO, format!("facade {}, {protocol} from {peer}", self.facade));
        let user = described(&request.user());
        walk.took("authentication", authentication.unwrap_or_default(), user);
    }
}

/// True if the request is sent to its handler. Writes require an explicit `send`; long-running requests are never sent.
fn sends(request: &Request, asked: Option<&HeaderValue>) -> Result<bool, Box<Status>> {
    let bad = |why: &str| Err(Box::new(Status::bad_request(why)));
    if request.headers().contains_key(UPGRADE) {
        return bad("an upgrade cannot be tried");
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    match asked.map(HeaderValue::as_bytes) {
        Some(b"send") if request.target().long_running => {
            bad("a request that may last for ever cannot be sent for a walk")
        }
        Some(b"send") => Ok(true),
        Some(b"walk") => Ok(reads && !request.target().long_running),
        _ => bad("Portico-Route-Try must be walk or send"),
    }
}
