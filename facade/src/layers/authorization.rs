//! Authorization: decides whether the user may perform the request, before the path is looked up.
//!
//! Decisions that depend on objects are requested from the control service; while none can be reached, requests are refused.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use portico_auditor::Latency;
use portico_auth::authz::Decider;
use portico_auth::{Authorizer, Decision, Verdict, forbidden};
use portico_kit::layer::Step;
use portico_kit::spans;
use portico_kit::walk::Walk;
use portico_machinery::Attributes;
use portico_machinery::user::MASTERS;
use tower::Service;

use crate::console_paths::{is_decided_behind, is_page};
use crate::handler::Handler;
use crate::metrics::access::AuthorizationMetrics;
use crate::request::{Request, RequestView, Response};
use crate::respond;
use crate::unavailable::unavailable;

/// Settings and state of the authorization layer.
pub struct Permissions {
    /// Decides if objects are needed for a decision.
    pub decider: Arc<dyn Decider>,
    /// Results and durations.
    pub metrics: AuthorizationMetrics,
    /// True if all callers can load the console page, which contains no data (as upstream's
    /// `--authorization-always-allow-paths`), and can request histories, for which the control service authorizes.
    pub console: bool,
}

/// Service of the authorization layer.
#[derive(Clone)]
pub struct Authorization<S> {
    permissions: Arc<Permissions>,
    inner: S,
}

impl<S> Authorization<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, permissions: Arc<Permissions>) -> Self {
        Self { permissions, inner }
    }
}

impl<S: Handler> Service<Request> for Authorization<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = Step<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let begin = Instant::now();
        let span = spans::child("authorization");
        let attributes = Attributes::new(request.user(), request.info().clone());
        let decision = match self.permissions.always_allow(&attributes) {
            true => Decision::allow(""),
            false => request.in_force().authorizer.authorize(&attributes),
        };
        if decision.verdict == Verdict::Ask {
            let (permissions, mut inner) = (self.permissions.clone(), self.inner.clone());
            return Step::waiting(async move {
                let decision = span.within(permissions.decider.decide(&attributes)).await;
                match permissions.refusal(&request, &attributes, decision, begin) {
                    Some(refusal) => Ok(refusal),
                    None => inner.call(request).await,
                }
            });
        }
        span.end();
        match self.permissions.refusal(&request, &attributes, Some(decision), begin) {
            Some(refusal) => Step::answered(Ok(refusal)),
            None => Step::passed(self.inner.call(request)),
        }
    }
}

impl Permissions {
    /// True if the request is allowed without an authorizer.
    fn always_allow(&self, attributes: &Attributes) -> bool {
        let request = &attributes.request;
        let may = match request.verb.as_str() {
            "get" | "head" => is_page(&request.path),
            "post" => is_decided_behind(&request.path),
            _ => false,
        };
        self.console && may && !request.is_resource_request
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
        record.took(Latency::Authorization, took);
        if let Some(walk) = record.walk() {
            note(walk, attributes, decision.as_ref(), begin);
        }
        let status = match &decision {
            Some(decision) if decision.allowed() => None,
            Some(decision) if decision.error.is_empty() => Some(forbidden(attributes, &decision.reason)),
            Some(decision) => {
                self.metrics.done(None, took);
                return Some(respond::internal(request, &decision.error));
            }
            None => Some(unavailable(attributes.request.is_read_only(), "no authorizer could be reached")),
        };
        // For other requests the audit event of the control service contains the decision.
        let is_decided_here = !is_decided_behind(&attributes.request.path);
        if let Some(audited) = record.audited().filter(|_| is_decided_here) {
            audited.set_decision(decision.as_ref().map(|decision| (decision.allowed(), &*decision.reason)));
        }
        self.metrics.done(decision.map(|decision| decision.verdict), took);
        status.map(|status| respond::forbidden(request, &status))
    }
}

/// Adds the decision and its rule to the trace.
fn note(walk: &Walk, attributes: &Attributes, decision: Option<&Decision>, begin: Instant) {
    const STAGE: &str = "authorization";
    let user = &attributes.user.name;
    // Upstream gives no reason if no rule was evaluated or none matched.
    let because = |decision: &Decision| match (&*decision.reason, decision.allowed()) {
        ("", true) if attributes.user.groups.iter().any(|group| group == MASTERS) => {
            format!(": group {MASTERS}")
        }
        ("", true) => String::new(),
        ("", false) => ": no rule allows it".to_owned(),
        (reason, _) => format!(": {reason}"),
    };
    match decision {
        Some(decision) if decision.allowed() => {
            walk.passed(STAGE, begin, format!("{user:?} may{}", because(decision)));
        }
        Some(decision) if decision.error.is_empty() => {
            walk.failed(STAGE, begin, format!("{user:?} may not{}", because(decision)));
        }
        Some(decision) => walk.failed(STAGE, begin, decision.error.clone()),
        None => walk.failed(STAGE, begin, "no authorizer could be reached"),
    }
}
