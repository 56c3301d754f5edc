//! What the handlers of endpoints share.

use std::sync::Arc;

use axum::extract::{Request, State};
use http::Method;
use http::header::ACCEPT;
use portico_auditor::Tail;
use portico_facade_catalog::Catalog;
use portico_flow::Dispatcher;
use portico_kit::health::Health;
use portico_kit::lifecycle::Signal;
use portico_kit::metrics::Registry;
use portico_kit::recent::Recent;
use portico_kit::telemetry::Telemetry;
use portico_machinery::Status;
use portico_machinery::accept::route_takes;
use portico_machinery::status::{Details, Reason};

use super::chosen::Chosen;
use crate::control::JsonCalls;
use crate::in_force::Current;
use crate::render::Renderer;
use crate::request::{RequestView, Response};
use crate::respond;
use crate::status_page::StatusPage;
use crate::test_faults::FaultsInForce;
use crate::version_info::VersionInfo;

/// What the handlers need.
pub struct Endpoints {
    /// The named checks.
    pub health: Health,
    /// All metrics.
    pub registry: Registry,
    /// The health checks' own metrics, for `/metrics/slis`.
    pub slis: Registry,
    /// The level of the log, when it can be changed.
    pub telemetry: Option<Telemetry>,
    /// `/version`
    pub version: VersionInfo,
    /// Which of them there are.
    pub chosen: Chosen,
    /// What `/statusz` shows.
    pub status_page: StatusPage,
    /// Discovery and OpenAPI.
    pub catalog: Arc<Catalog>,
    /// Who waits for seats, where requests are queued.
    pub flow: Option<Dispatcher>,
    /// For large documents.
    pub renderer: Renderer,
    /// What the console shows, unless there is none (`--console=false`).
    pub console: Option<Console>,
    /// The faults that tests have asked for, where they may (`--test-faults`).
    pub test_faults: Option<TestFaults>,
    /// `host:port` of this facade, where its issuer's keys are published unless somebody else does.
    pub server_address: String,
}

/// What the console shows that no other endpoint has.
pub struct Console {
    /// Samples of this facade's metrics.
    pub last_hour: Arc<Recent>,
    /// Latest audit events; `None` without audit.
    pub audit_tail: Option<Tail>,
    /// Methods of the control service that may be called over HTTPS.
    pub control: JsonCalls,
    /// What requests go by, for whoever follows how backends are.
    pub in_force: Current,
    /// Streams end when the facade stops.
    pub stopping: Signal,
}

/// What the endpoint of faults needs.
pub struct TestFaults {
    /// Those that are in force.
    pub in_force: Arc<FaultsInForce>,
    /// Knows the revision of now.
    pub control: JsonCalls,
}

/// The handlers' state, as axum gives it to them.
pub type Shared = State<Arc<Endpoints>>;

/// What a route that only reads and only knows one media type refuses: 405 and 406.
pub fn refusal(request: &Request, media_type: &str) -> Option<Response> {
    if request.method() != Method::GET {
        return Some(respond::status(request, &Status::no_method()));
    }
    let accept = request.header(ACCEPT);
    if accept.is_empty() || route_takes(accept, &[media_type]) {
        return None;
    }
    let message = format!("406: Not Acceptable\n\nAvailable representations: {media_type}");
    let status = Status::failure(Reason::NotAcceptable, message).with_details(Details::default());
    Some(respond::status(request, &status))
}
