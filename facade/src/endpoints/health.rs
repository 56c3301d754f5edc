//! `/healthz`, `/livez`, `/readyz` and their checks, in upstream's text.

use axum::extract::Request;
use http::StatusCode;
use portico_gostd::url::Query;
use portico_kit::health::{HealthEndpoint, HealthQuery, HealthResponse};

use super::state::SharedEndpoints;
use crate::request::{RequestView, Response};
use crate::respond;

pub(super) async fn all(endpoint: HealthEndpoint, endpoints: SharedEndpoints, request: Request) -> Response {
    let query = match request.query() {
        "" => HealthQuery::default(),
        raw => HealthQuery::from_pairs(Query::parse(raw).iter()),
    };
    text(endpoints.health.evaluate(endpoint, &query).await)
}

/// Serves one check. Its name can contain slashes.
pub(super) async fn single(
    endpoint: HealthEndpoint,
    endpoints: SharedEndpoints,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let path = parts.info().path.strip_prefix('/').and_then(|path| path.strip_prefix(endpoint.name()));
    let name = path.and_then(|path| path.strip_prefix('/')).unwrap_or_default();
    match endpoints.health.single(endpoint, name).await {
        Some(rendered) => text(rendered),
        None => respond::not_found(&parts),
    }
}

fn text(rendered: HealthResponse) -> Response {
    let code = StatusCode::from_u16(rendered.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    respond::plain(code, rendered.body)
}
