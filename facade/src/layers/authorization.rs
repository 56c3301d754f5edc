//! Authorization: decides whether the user may perform the request, before the path is looked up.
//!
//! Decisions that depend on objects are requested from the control service; while none can be reached, requests are refused.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use portico_auditor::Latency;
use portico_auth::authz::RemoteAuthorizer;
use portico_auth::{Authorizer, Decision, Verdict, forbidden};
use portico_kit::layer::LayerFuture;
use portico_kit::request_trace::RequestTrace;
use portico_kit::spans;
use portico_machinery::Attributes;
use portico_machinery::user::MASTERS;
use tower::Service;

use crate::console_paths::{is_authorized_by_control_service, is_page};
use crate::handler::Handler;
use crate::metrics::access::AuthorizationMetrics;
use crate::request::{Request, RequestView, Response};
use crate::respond;
use crate::unavailable::unavailable;

/// Settings and state of the authorization layer.
pub struct AuthorizationState {
    /// Decides if objects are needed for a decision.
    pub decider: Arc<dyn RemoteAuthorizer>,
    /// Results and durations.
    pub metrics: AuthorizationMetrics,
    /// True if all callers can load the console page, which contains no data (as upstream's
    /// `--authorization-always-allow-paths`), and can request histories, for which the control service authorizes.
    pub console: bool,
}

/// Service of the authorization layer.
#[derive(Clone)]
pub struct Authorization<S> {
    state: Arc<AuthorizationState>,
    inner: S,
}

impl<S> Authorization<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, state: Arc<AuthorizationState>) -> Self {
        Self { state, inner }
    }
}

impl<S: Handler> Service<Request> for Authorization<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = LayerFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let begin = Instant::now();
        let span = spans::child("authorization");
        let attributes = Attributes::new(request.user(), request.info().clone());
        let decision = match self.state.always_allow(&attributes) {
            true => Decision::allow(""),
            false => request.active_config().authorizer.authorize(&attributes),
        };
        if decision.verdict == Verdict::Delegate {
            let (permissions, mut inner) = (self.state.clone(), self.inner.clone());
            return LayerFuture::from_boxed(async move {
                let decision = span.instrument(permissions.decider.decide(&attributes)).await;
                match permissions.refusal(&request, &attributes, decision, begin) {
                    Some(refusal) => Ok(refusal),
                    None => inner.call(request).await,
                }
            });
        }
        span.end();
        match self.state.refusal(&request, &attributes, Some(decision), begin) {
            Some(refusal) => LayerFuture::from_response(Ok(refusal)),
            None => LayerFuture::from_inner(self.inner.call(request)),
        }
    }
}

impl AuthorizationState {
    /// True if the request is allowed without an authorizer.
    fn always_allow(&self, attributes: &Attributes) -> bool {
        let request = &attributes.request;
        let is_public = match request.verb.as_str() {
            "get" | "head" => is_page(&request.path),
            "post" => is_authorized_by_control_service(&request.path),
            _ => false,
        };
        self.console && is_public && !request.is_resource_request
    }

    /// Counts the decision. Returns the refusal; `None` if the request is allowed.
    fn refusal(
        &self,
        request: &Request,
        attributes: &Attributes,
        decision: Option<Decision>,
        begin: Instant,
    ) -> Option<Response> {
        let took = begin.elapsed();
        let record = request.record();
        record.record_latency(Latency::Authorization, took);
        if let Some(trace) = record.trace() {
            trace_decision(trace, attributes, decision.as_ref(), begin);
        }
        let status = match &decision {
            Some(decision) if decision.is_allowed() => None,
            Some(decision) if decision.error.is_empty() => Some(forbidden(attributes, &decision.reason)),
            Some(decision) => {
                self.metrics.record_result(None, took);
                return Some(respond::internal(request, &decision.error));
            }
            None => Some(unavailable(attributes.request.is_read_only(), "no authorizer could be reached")),
        };
        // For other requests the audit event of the control service contains the decision.
        let is_decided_here = !is_authorized_by_control_service(&attributes.request.path);
        if let Some(audited) = record.audited().filter(|_| is_decided_here) {
            audited
                .set_decision(decision.as_ref().map(|decision| (decision.is_allowed(), &*decision.reason)));
        }
        self.metrics.record_result(decision.map(|decision| decision.verdict), took);
        status.map(|status| respond::forbidden(request, &status))
    }
}

/// Adds the decision and its rule to the trace.
fn trace_decision(
    trace: &RequestTrace,
    attributes: &Attributes,
    decision: Option<&Decision>,
    begin: Instant,
) {
    const STAGE: &str = "authorization";
    let user = &attributes.user.name;
    // Upstream gives no reason if no rule was evaluated or none matched.
    let reason_suffix = |decision: &Decision| match (&*decision.reason, decision.is_allowed()) {
        ("", true) if attributes.user.groups.iter().any(|group| group == MASTERS) => {
            format!(": group {MASTERS}")
        }
        ("", true) => String::new(),
        ("", false) => ": no rule allows it".to_owned(),
        (reason, _) => format!(": {reason}"),
    };
    match decision {
        Some(decision) if decision.is_allowed() => {
            trace.record_passed(STAGE, begin, format!("{user:?} may{}", reason_suffix(decision)));
        }
        Some(decision) if decision.error.is_empty() => {
            trace.record_failed(STAGE, begin, format!("{user:?} may not{}", reason_suffix(decision)));
        }
        Some(decision) => trace.record_failed(STAGE, begin, decision.error.clone()),
        None => trace.record_failed(STAGE, begin, "no authorizer could be reached"),
    }
}
