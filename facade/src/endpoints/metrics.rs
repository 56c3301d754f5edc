//! `/metrics` and `/metrics/slis`, as Prometheus text or OpenMetrics.

use http::header::ACCEPT;
use http::{Method, Response, StatusCode};
use portico_kit::metrics::{Format, Registry};

use crate::body::Body;
use crate::context::RequestContext;
use crate::respond;

pub(super) fn answer(registry: &Registry, profiling: bool, x: &RequestContext) -> Response<Body> {
    if x.parts.method == Method::DELETE && profiling {
        // Upstream resets counters here. Ours stay: a scraper takes a reset for a restart, and nobody needs it.
        return respond::text(StatusCode::OK, "metrics reset");
    }
    let accept = x.header(ACCEPT);
    let format = Format::from_accept((!accept.is_empty()).then_some(accept));
    respond::whole(StatusCode::OK, format.content_type(), registry.encode(format))
}
