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
use portico_auth::authz::RemoteAuthorizer;
use portico_auth::{Authorizer, Decision, Verdict, forbidden};
use portico_kit::layer::LayerFuture;
use portico_kit::request_trace::RequestTrace;
use portico_machinery::{Attributes, RequestInfo, Status};
use tower::Service;

use super::impersonation::describe_user;
use crate::handler::{Handler, HandlerResult};
use crate::request::{Request, RequestView, Response};
use crate::respond;
use report::{ReadBody, ReportBuilder};

/// Header that requests a trace: `walk`, or `send` for a write that is to be executed. The response with a trace has it as well.
pub const ROUTE_TRY: HeaderName = HeaderName::from_static("portico-route-try");
/// Path that the caller must be permitted to get.
pub const PERMISSION: &str = "/portico/route-try";

/// Settings of the layer.
#[derive(Clone)]
pub struct RouteTraceState {
    /// Authorizer for decisions that need objects of the control service.
    pub remote_authorizer: Arc<dyn RemoteAuthorizer>,
    /// Name of this facade.
    pub facade: String,
}

/// Service of the layer that traces requests.
#[derive(Clone)]
pub struct RouteTrace<S> {
    state: RouteTraceState,
    inner: S,
}

impl<S> RouteTrace<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, state: RouteTraceState) -> Self {
        Self { state, inner }
    }
}

impl<S: Handler> Service<Request> for RouteTrace<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = LayerFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        if !request.headers().contains_key(ROUTE_TRY) {
            return LayerFuture::from_inner(self.inner.call(request));
        }
        let (state, inner) = (self.state.clone(), self.inner.clone());
        LayerFuture::from_boxed(state.trace_request(request, inner))
    }
}

impl RouteTraceState {
    async fn trace_request<S: Handler>(self, mut request: Request, mut inner: S) -> HandlerResult {
        if let Err(refusal) = self.check_permission(&request).await {
            if let Some(audited) = request.record().audited() {
                audited.set_decision(Some((false, &refusal.message)));
            }
            return Ok(respond::forbidden(&request, &refusal));
        }
        let header = request.headers_mut().remove(ROUTE_TRY);
        let should_send = match is_to_be_sent(&request, header.as_ref()) {
            Ok(sends) => sends,
            Err(refusal) => return Ok(respond::status(&request, &refusal)),
        };
        let trace = Arc::new(RequestTrace::new(request.received(), should_send));
        let record = request.record();
        self.add_earlier_stages(&trace, &request, record.authentication_took.get().copied());
        // Only this layer sets it.
        let _ = record.trace.set(Arc::clone(&trace));
        let audited = record.audited().cloned();
        let report = ReportBuilder::from_request(&request);
        let response = inner.call(request).await?;
        let (head, body) = response.into_parts();
        let is_error = head.status.is_client_error() || head.status.is_server_error();
        if !trace.is_stopped() {
            trace.record_response(!is_error, head.status.to_string());
        }
        let begin = Instant::now();
        let read = ReadBody::read(body).await;
        if !trace.is_stopped() && !is_error {
            read.trace_body(&trace, begin);
        }
        if let Some(audited) = audited {
            audited.annotate([("portico.dev/route-try", if trace.is_sent() { "sent" } else { "not sent" })]);
        }
        let mut response = report.into_response(head, &read, &trace);
        response.headers_mut().insert(ROUTE_TRY, HeaderValue::from_static("walk"));
        Ok(response)
    }

    /// Checks that the caller may see traces.
    async fn check_permission(&self, request: &Request) -> Result<(), Box<Status>> {
        let info = RequestInfo::parse("GET", PERMISSION, "").unwrap_or_default();
        let attributes = Attributes::new(request.user(), info);
        let mut decision = request.active_config().authorizer.authorize(&attributes);
        if decision.verdict == Verdict::Delegate {
            decision = self
                .remote_authorizer
                .decide(&attributes)
                .await
                .unwrap_or_else(|| Decision::deny("no authorizer could be reached"));
        }
        if decision.is_allowed() { Ok(()) } else { Err(Box::new(forbidden(&attributes, &decision.reason))) }
    }

    /// Adds the stages before this layer to the trace.
    fn add_earlier_stages(&self, trace: &RequestTrace, request: &Request, authentication: Option<Duration>) {
        let protocol = if request.is_http2() { "HTTP/2" } else { "HTTP/1.1" };
        let peer = request.connection().peer;
        trace.record_duration(
            "listener",
            Duration::ZERO,
            format!("facade {}, {protocol} from {peer}", self.facade),
        );
        let user = describe_user(&request.user());
        trace.record_duration("authentication", authentication.unwrap_or_default(), user);
    }
}

/// True if the request is sent to its handler. Writes require an explicit `send`; long-running requests are never sent.
fn is_to_be_sent(request: &Request, header: Option<&HeaderValue>) -> Result<bool, Box<Status>> {
    let bad_request = |message: &str| Err(Box::new(Status::bad_request(message)));
    if request.headers().contains_key(UPGRADE) {
        return bad_request("a request that upgrades its connection cannot be traced");
    }
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    match header.map(HeaderValue::as_bytes) {
        Some(b"send") if request.target().long_running => {
            bad_request("a long-running request can be traced but not sent")
        }
        Some(b"send") => Ok(true),
        Some(b"walk") => Ok(is_read && !request.target().long_running),
        _ => bad_request("Portico-Route-Try must be walk or send"),
    }
}
