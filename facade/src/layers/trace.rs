//! Traces requests (`filters.WithTracing`): the span of a request contains everything after authentication, so that the caller's
//! identity decides whether the client's trace is continued.

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::SystemTime;

use futures::future::BoxFuture;
use http::header::USER_AGENT;
use portico_kit::{header_text, spans};
use portico_machinery::RequestInfo;
use tower::Service;

use crate::handler::{Handler, HandlerResult};
use crate::request::{Request, RequestView, Response};

/// Service of the tracing layer.
#[derive(Clone)]
pub struct Trace<S> {
    inner: S,
}

impl<S> Trace<S> {
    /// Wraps `inner`.
    pub fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S: Handler> Service<Request> for Trace<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, HandlerResult>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let since = SystemTime::now().checked_sub(request.received().elapsed());
        let since = since.unwrap_or_else(SystemTime::now);
        let is_trusted = request.user().may_start_traces();
        let name = span_name(&request);
        let span = spans::request(name, request.headers(), is_trusted, since);
        if span.is_recorded() {
            describe(&span, &request);
        }
        let mut inner = self.inner.clone();
        Box::pin(span.instrument(async move {
            // It started with the request and has just ended.
            spans::child_since("authentication", since).end();
            let answer = inner.call(request).await;
            if let Ok(response) = &answer {
                let code = response.status();
                spans::current().set_attribute("http.response.status_code", i64::from(code.as_u16()));
                if code.is_server_error() {
                    spans::current().set_error(code.canonical_reason().unwrap_or_default());
                }
            }
            answer
        }))
    }
}

fn describe(span: &spans::Span, request: &Request) {
    span.set_attribute("http.request.method", request.method().to_string());
    span.set_attribute("url.scheme", "https");
    span.set_attribute("url.path", request.uri().path().to_owned());
    // Upstream includes the query, which can contain tokens.
    span.set_attribute("http.target", request.uri().path().to_owned());
    span.set_attribute("audit-id", header_text::text(request.audit_id()).to_owned());
    span.set_attribute("user_agent.original", request.header(USER_AGENT).to_owned());
    span.set_attribute("network.peer.address", request.connection().peer.ip().to_string());
}

/// Name of the span: the method and, for resources, the path without names (`getSpanNameFromRequestInfo`).
fn span_name(request: &Request) -> String {
    let (method, info) = (request.method(), request.info());
    if info.is_resource_request { format!("{method} {}", route(info)) } else { method.to_string() }
}

fn route(info: &RequestInfo) -> String {
    let mut route = format!("/{}", info.api_prefix);
    let mut push = |part: &str| {
        route.push('/');
        route.push_str(part);
    };
    if !info.api_group.is_empty() {
        push(&info.api_group);
    }
    push(&info.api_version);
    if !info.namespace.is_empty() {
        push("namespaces/{:namespace}");
    }
    push(&info.resource);
    if !info.name.is_empty() {
        push("{:name}");
    }
    if !info.subresource.is_empty() {
        push(&info.subresource);
    }
    route
}
