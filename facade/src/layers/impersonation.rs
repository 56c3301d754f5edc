//! Impersonation: replaces the caller if permitted, and removes the impersonation headers.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use http::header::HeaderName;
use portico_auditor::Latency;
use portico_auth::authz::{Decider, Delegating, Questions};
use portico_auth::impersonate::{ImpersonationRequest, consumes_header, impersonate};
use portico_kit::layer::Step;
use portico_kit::metrics::Histogram;
use portico_kit::walk::Walk;
use portico_machinery::{Status, UserInfo};
use tower::Service;

use super::header_values::Headers;
use crate::handler::Handler;
use crate::request::{Caller, Request, RequestView, Response};
use crate::respond;

/// Settings and state of the impersonation layer.
#[derive(Clone)]
pub struct Impersonations {
    /// Decides if objects are needed for a decision.
    pub decider: Arc<dyn Decider>,
    /// `apiserver_request_filter_duration_seconds{filter="impersonation"}`
    pub duration: Histogram,
}

/// Service of the impersonation layer.
#[derive(Clone)]
pub struct Impersonation<S> {
    impersonations: Impersonations,
    inner: S,
}

impl<S> Impersonation<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, impersonations: Impersonations) -> Self {
        Self { impersonations, inner }
    }
}

impl<S: Handler> Service<Request> for Impersonation<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = Step<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let asking: Vec<HeaderName> =
            request.headers().keys().filter(|name| consumes_header(name.as_str())).cloned().collect();
        if asking.is_empty() {
            return Step::passed(self.inner.call(request));
        }
        let (impersonations, mut inner) = (self.impersonations.clone(), self.inner.clone());
        Step::waiting(async move {
            let begin = Instant::now();
            let decided = impersonations.decide(&request).await;
            for name in asking {
                request.headers_mut().remove(&name);
            }
            let took = begin.elapsed();
            impersonations.duration.observe(took.as_secs_f64());
            request.record().took(Latency::Impersonation, took);
            if let Some(walk) = request.walk() {
                note(walk, &decided, begin);
            }
            match decided {
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

impl Impersonations {
    async fn decide(&self, request: &Request) -> Result<Option<Caller>, Box<Status>> {
        let Some(wanted) = ImpersonationRequest::from_headers(&Headers(request.headers()))? else {
            return Ok(None);
        };
        let local = Arc::clone(&request.in_force().authorizer);
        let questions = Questions::new(Arc::new(Delegating::new(local, Arc::clone(&self.decider))));
        loop {
            let impersonated = impersonate(&questions, &request.user(), request.info(), &wanted);
            if questions.settle().await {
                continue;
            }
            let impersonated = impersonated?;
            let user = Arc::new(impersonated.user);
            if let Some(audited) = request.record().audited() {
                audited.impersonate(&user, &impersonated.constraint);
            }
            return Ok(Some(Caller(user)));
        }
    }
}

/// Adds the impersonated user, or the refusal, to the trace.
fn note(walk: &Walk, decided: &Result<Option<Caller>, Box<Status>>, begin: Instant) {
    match decided {
        Ok(Some(Caller(user))) => walk.passed("impersonation", begin, format!("as {}", described(user))),
        Ok(None) => {}
        Err(status) => walk.failed("impersonation", begin, status.message.clone()),
    }
}

/// Describes a user by name and groups.
pub(super) fn described(user: &UserInfo) -> String {
    format!("{:?} (groups: {})", user.name, user.groups.join(", "))
}
