//! HTTPLogging and latency: one line per request at level `debug`, errors of the server at `info`, and the
//! request's metrics.
//!
//! The line is written when the head is ready; the metrics count when the last byte is out (the response's tail).

use std::sync::Arc;

use http::Response;
use http::header::{HeaderValue, USER_AGENT};
use portico_gostd::url::pairs;

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;
use crate::metrics::{RequestMetrics, Terminated};
use crate::tail::Tail;

/// See the module.
pub struct HttpLog {
    /// Where requests are counted.
    pub metrics: Arc<RequestMetrics>,
}

impl Filter for HttpLog {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        // Kept for the line: an inner handler may take the request away.
        let line = Line::of(x);
        let dry_run = pairs(x.query().as_bytes()).any(|(key, value)| &*key == b"dryRun" && &*value == b"All");
        let response = next.handle(x).await;
        line.write(x, &response);
        let code = response.status().as_u16();
        let query = if dry_run { "dryRun=All" } else { "" };
        let labels = self.metrics.labels(&x.info, x.component, x.known_resource, x.long_running, query);
        if terminated(&response) {
            self.metrics.terminated(&labels, code);
        }
        let guards = std::mem::take(&mut x.guards);
        let exchange = x.exchange.clone();
        let tail = Tail::new(guards, exchange, x.deadline, labels, x.received, code, self.metrics.clone());
        response.map(|body| body.with_tail(Box::new(tail)))
    }
}

/// Whether a filter or the proxy ended the request in the server's defence.
fn terminated(response: &Response<Body>) -> bool {
    let extensions = response.extensions();
    extensions.get::<Terminated>().is_some() || extensions.get::<portico_proxy::Termination>().is_some()
}

/// What the line says of a request. Not its query: tokens may stand in there.
struct Line {
    method: http::Method,
    /// Where lines of all requests are wanted.
    uri: Option<http::Uri>,
    agent: Option<http::HeaderValue>,
}

impl Line {
    fn of(x: &RequestContext) -> Self {
        let all = tracing::enabled!(target: "http", tracing::Level::DEBUG);
        let uri = all.then(|| x.parts.uri.clone());
        Self { method: x.parts.method.clone(), uri, agent: x.parts.headers.get(USER_AGENT).cloned() }
    }

    fn write(self, x: &RequestContext, response: &Response<Body>) {
        let code = response.status().as_u16();
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let fields = || (self.agent.as_ref().map(text).unwrap_or_default(), text(&x.audit_id));
        if code >= 500 {
            let (agent, audit_id) = fields();
            tracing::info!(target: "http", method = %self.method, path = x.info.path, code,
                latency = ?x.received.elapsed(), agent, audit_id, peer = %x.connection.peer, "request");
        } else if let Some(uri) = &self.uri {
            let (agent, audit_id) = fields();
            tracing::debug!(target: "http", method = %self.method, path = uri.path(), code,
                latency = ?x.received.elapsed(), agent, audit_id, peer = %x.connection.peer, "request");
        }
    }
}
