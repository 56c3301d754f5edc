//! Lifecycle (upstream's HTTPLogging and latency): owns the resources of a request until its last byte is sent, writes one log
//! line per request at level `debug`, or at `info` for server errors, and counts the request.
//!
//! The line is written when the head is ready; metrics count when the last byte is sent (the response's completion).

use std::sync::Arc;
use std::time::Instant;

use http::header::{CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{Method, Uri};
use portico_gostd::time::format_duration;
use portico_gostd::url::pairs;
use portico_kit::layer::ResponseTransform;
use portico_proxy::Tunnel;

use crate::connection::Connection;
use crate::metrics::{MeasuredRequest, RequestMetrics, Terminated};
use crate::record::RequestRecord;
use crate::request::{Request, RequestView, Response, Target};
use crate::response_completion::ResponseCompletion;

/// Media type of a server-side apply.
const APPLY: &str = "application/apply-patch+yaml";

/// Bytes of the client's `Audit-ID` that are logged, as upstream.
const MAX_AUDIT_ID_BYTES: usize = 64;

/// Creates the layer; it counts requests in `metrics`.
pub fn lifecycle(metrics: Arc<RequestMetrics>) -> impl FnMut(&mut Request) -> RequestLifecycle + Clone {
    move |request| {
        let record = Arc::<RequestRecord>::default();
        request.extensions_mut().insert(record.clone());
        RequestLifecycle {
            log_line: LogLine::from_request(request),
            target: request.target().clone(),
            connection: request.connection().clone(),
            received: request.received(),
            dry_run: dry_run(request.query()),
            is_apply: request.header(CONTENT_TYPE) == APPLY,
            record,
            metrics: metrics.clone(),
        }
    }
}

/// Value of the label `dry_run` (upstream's `cleanDryRun`).
fn dry_run(query: &str) -> &'static str {
    if !query.contains("dryRun") {
        return "";
    }
    let mut values = pairs(query.as_bytes()).filter(|(key, _)| &**key == b"dryRun").map(|(_, value)| value);
    match (values.next(), values.next()) {
        (None, _) => "",
        (Some(value), None) if &*value == b"All" => "All",
        _ => "invalid",
    }
}

/// State of a request while inner layers serve it.
pub struct RequestLifecycle {
    log_line: LogLine,
    target: Target,
    connection: Arc<Connection>,
    received: Instant,
    dry_run: &'static str,
    is_apply: bool,
    record: Arc<RequestRecord>,
    metrics: Arc<RequestMetrics>,
}

impl ResponseTransform<Response> for RequestLifecycle {
    fn apply(self, mut response: Response) -> Response {
        self.log_line.write(&self, &response);
        let code = response.status().as_u16();
        let labels = self.metrics.labels(&MeasuredRequest {
            info: &self.target.info,
            component: self.record.component(),
            known_resource: self.record.known_resource(),
            long_running: self.target.long_running,
            dry_run: self.dry_run,
            is_apply: self.is_apply,
        });
        if is_terminated(&response) {
            self.metrics.record_termination(&labels, code);
        }
        let exchange = self.connection.exchange();
        let mut completion =
            ResponseCompletion::new(self.record, exchange, labels, self.received, code, self.metrics);
        let Some(tunnel) = response.extensions_mut().remove::<Tunnel>() else {
            return response.map(|body| body.with_completion(Box::new(completion)));
        };
        if !self.target.long_running {
            // A short request releases its seat with the handshake, however long its tunnel lives.
            completion.release();
        }
        tunnel.keep(completion);
        response
    }
}

/// True if a layer or the proxy terminated the request to protect the server.
fn is_terminated(response: &Response) -> bool {
    let extensions = response.extensions();
    extensions.get::<Terminated>().is_some() || extensions.get::<portico_proxy::Termination>().is_some()
}

/// Content of the log line. The query is omitted because it can contain tokens.
struct LogLine {
    method: Method,
    /// Set if all requests are logged.
    uri: Option<Uri>,
    agent: Option<HeaderValue>,
    audit_id: HeaderValue,
}

impl LogLine {
    fn from_request(request: &Request) -> Self {
        let all = tracing::enabled!(target: "http", tracing::Level::DEBUG);
        Self {
            method: request.method().clone(),
            uri: all.then(|| request.uri().clone()),
            agent: request.headers().get(USER_AGENT).cloned(),
            audit_id: request.audit_id().clone(),
        }
    }

    fn write(&self, request: &RequestLifecycle, response: &Response) {
        let code = response.status().as_u16();
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let fields = || {
            let id = self.audit_id.as_bytes();
            let id = String::from_utf8_lossy(&id[..id.len().min(MAX_AUDIT_ID_BYTES)]).into_owned();
            let latency = format_duration(request.received.elapsed());
            (self.agent.as_ref().map(text).unwrap_or_default(), id, latency)
        };
        if code >= 500 {
            let (agent, audit_id, latency) = fields();
            tracing::info!(target: "http", method = %self.method, path = request.target.info.path, code,
                latency, agent, audit_id, peer = %request.connection.peer, "request");
        } else if let Some(uri) = &self.uri {
            let (agent, audit_id, latency) = fields();
            tracing::debug!(target: "http", method = %self.method, path = uri.path(), code,
                latency, agent, audit_id, peer = %request.connection.peer, "request");
        }
    }
}
