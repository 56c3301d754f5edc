//! State that the handlers of endpoints share.

use std::sync::Arc;

use axum::extract::{Request, State};
use http::Method;
use http::header::ACCEPT;
use portico_auditor::AuditTail;
use portico_facade_catalog::Catalog;
use portico_flow::Dispatcher;
use portico_kit::health::Health;
use portico_kit::lifecycle::Signal;
use portico_kit::metrics::Registry;
use portico_kit::recent_lines::RecentLines;
use portico_kit::telemetry::Telemetry;
use portico_machinery::Status;
use portico_machinery::accept::route_accepts;
use portico_machinery::status::{Details, Reason};

use super::options::EndpointOptions;
use crate::active_config::ActiveConfigCell;
use crate::control::JsonCalls;
use crate::render::Renderer;
use crate::request::{RequestView, Response};
use crate::respond;
use crate::status_page::StatusPage;
use crate::test_faults::FaultStore;
use crate::version_info::VersionInfo;

/// State of the handlers.
pub struct Endpoints {
    /// Health checks.
    pub health: Health,
    /// All metrics.
    pub registry: Registry,
    /// Metrics of the health checks, for `/metrics/slis`.
    pub slis: Registry,
    /// The log, if its level can be changed.
    pub telemetry: Option<Telemetry>,
    /// `/version`
    pub version: VersionInfo,
    /// Optional endpoints that are served.
    pub options: EndpointOptions,
    /// Content of `/statusz`.
    pub status_page: StatusPage,
    /// Discovery and OpenAPI.
    pub catalog: Arc<Catalog>,
    /// Queues of priority and fairness, if requests queue.
    pub flow: Option<Dispatcher>,
    /// Renders large documents.
    pub renderer: Renderer,
    /// State of the console; `None` without it (`--console=false`).
    pub console: Option<Console>,
    /// Faults that tests have requested, if allowed (`--test-faults`).
    pub test_faults: Option<TestFaults>,
    /// `host:port` of this facade, under which the issuer's keys are published unless another server publishes them.
    pub server_address: String,
}

/// State that only the console uses.
pub struct Console {
    /// Samples of this facade's metrics.
    pub last_hour: Arc<RecentLines>,
    /// Latest audit events; `None` without audit.
    pub audit_tail: Option<AuditTail>,
    /// Calls methods of the control service over HTTPS.
    pub control: JsonCalls,
    /// Active configuration, for clients that follow the state of backends.
    pub active_config: ActiveConfigCell,
    /// Signaled when the facade stops; streams then end.
    pub stopping: Signal,
}

/// State of the endpoint of test faults.
pub struct TestFaults {
    /// Faults that are set.
    pub faults: Arc<FaultStore>,
    /// Queries the current revision.
    pub control: JsonCalls,
}

/// Extractor of the handlers' state.
pub type SharedEndpoints = State<Arc<Endpoints>>;

/// Returns the refusal of a request to an endpoint that only supports GET and one media type: 405 or 406.
pub fn refusal(request: &Request, media_type: &str) -> Option<Response> {
    if request.method() != Method::GET {
        return Some(respond::status(request, &Status::method_not_allowed()));
    }
    let accept = request.header(ACCEPT);
    if accept.is_empty() || route_accepts(accept, &[media_type]) {
        return None;
    }
    let message = format!("406: Not Acceptable\n\nAvailable representations: {media_type}");
    let status = Status::failure(Reason::NotAcceptable, message).with_details(Details::default());
    Some(respond::status(request, &status))
}
