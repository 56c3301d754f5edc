//! `/metrics` and `/metrics/slis`, as Prometheus text or OpenMetrics.

use axum::extract::{Request, State};
use http::header::ACCEPT;
use http::{Method, StatusCode};
use portico_kit::metrics::{Format, Registry};

use super::state::SharedEndpoints;
use crate::request::{RequestView, Response};
use crate::respond;

/// Serves all metrics.
pub(super) async fn all(State(endpoints): SharedEndpoints, request: Request) -> Response {
    if request.method() == Method::DELETE && endpoints.options.profiling {
        // Upstream resets counters here. Portico does not: a scraper interprets a reset as a restart.
        return respond::text(StatusCode::OK, "metrics reset");
    }
    encode(&endpoints.registry, &request)
}

/// Serves the metrics of health checks.
pub(super) async fn slis(State(endpoints): SharedEndpoints, request: Request) -> Response {
    encode(&endpoints.slis, &request)
}

fn encode(registry: &Registry, request: &Request) -> Response {
    let accept = request.header(ACCEPT);
    let format = Format::from_accept((!accept.is_empty()).then_some(accept));
    respond::with_body(StatusCode::OK, format.content_type(), registry.encode(format))
}
