//! Impersonation: replaces the caller if permitted, and removes the impersonation headers.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use http::header::HeaderName;
use portico_auditor::Latency;
use portico_auth::authz::{DeferredAuthorizer, DelegatingAuthorizer, RemoteAuthorizer};
use portico_auth::impersonate::{ImpersonationRequest, consumes_header, impersonate};
use portico_kit::layer::LayerFuture;
use portico_kit::metrics::Histogram;
use portico_kit::request_trace::RequestTrace;
use portico_machinery::{Status, UserInfo};
use tower::Service;

use super::header_values::Headers;
use crate::handler::Handler;
use crate::request::{Caller, Request, RequestView, Response};
use crate::respond;

/// Settings and state of the impersonation layer.
#[derive(Clone)]
pub struct ImpersonationState {
    /// Decides if objects are needed for a decision.
    pub decider: Arc<dyn RemoteAuthorizer>,
    /// `apiserver_request_filter_duration_seconds{filter="impersonation"}`
    pub duration: Histogram,
}

/// Service of the impersonation layer.
#[derive(Clone)]
pub struct Impersonation<S> {
    state: ImpersonationState,
    inner: S,
}

impl<S> Impersonation<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, state: ImpersonationState) -> Self {
        Self { state, inner }
    }
}

impl<S: Handler> Service<Request> for Impersonation<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = LayerFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let impersonation_headers: Vec<HeaderName> =
            request.headers().keys().filter(|name| consumes_header(name.as_str())).cloned().collect();
        if impersonation_headers.is_empty() {
            return LayerFuture::from_inner(self.inner.call(request));
        }
        let (impersonations, mut inner) = (self.state.clone(), self.inner.clone());
        LayerFuture::from_boxed(async move {
            let begin = Instant::now();
            let decision = impersonations.decide(&request).await;
            for name in impersonation_headers {
                request.headers_mut().remove(&name);
            }
            let took = begin.elapsed();
            impersonations.duration.observe(took.as_secs_f64());
            request.record().record_latency(Latency::Impersonation, took);
            if let Some(trace) = request.trace() {
                trace_impersonation(trace, &decision, begin);
            }
            match decision {
                Ok(caller) => {
                    if let Some(caller) = caller {
                        request.extensions_mut().insert(caller);
                    }
                    inner.call(request).await
                }
                Err(status) => Ok(respond::forbidden(&request, &status)),
            }
        })
    }
}

impl ImpersonationState {
    async fn decide(&self, request: &Request) -> Result<Option<Caller>, Box<Status>> {
        let Some(impersonation) = ImpersonationRequest::from_headers(&Headers(request.headers()))? else {
            return Ok(None);
        };
        let local = Arc::clone(&request.active_config().authorizer);
        let authorizer =
            DeferredAuthorizer::new(Arc::new(DelegatingAuthorizer::new(local, Arc::clone(&self.decider))));
        loop {
            let impersonated = impersonate(&authorizer, &request.user(), request.info(), &impersonation);
            if authorizer.resolve_pending().await {
                continue;
            }
            let impersonated = impersonated?;
            let user = Arc::new(impersonated.user);
            if let Some(audited) = request.record().audited() {
                audited.set_impersonated_user(&user, &impersonated.constraint);
            }
            return Ok(Some(Caller(user)));
        }
    }
}

/// Adds the impersonated user, or the refusal, to the trace.
fn trace_impersonation(trace: &RequestTrace, decision: &Result<Option<Caller>, Box<Status>>, begin: Instant) {
    match decision {
        Ok(Some(Caller(user))) => {
            trace.record_passed("impersonation", begin, format!("as {}", describe_user(user)))
        }
        Ok(None) => {}
        Err(status) => trace.record_failed("impersonation", begin, status.message.clone()),
    }
}

/// Describes a user by name and groups.
pub(super) fn describe_user(user: &UserInfo) -> String {
    format!("{:?} (groups: {})", user.name, user.groups.join(", "))
}
