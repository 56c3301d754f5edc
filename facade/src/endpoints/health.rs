//! `/healthz`, `/livez`, `/readyz` and their checks, in upstream's text.

use http::{Response, StatusCode};
use portico_gostd::url::Query;
use portico_kit::health::{Endpoint, Health, HealthQuery, Rendered};

use crate::body::Body;
use crate::context::RequestContext;
use crate::respond;

pub(super) async fn all(health: &Health, endpoint: Endpoint, x: &RequestContext) -> Response<Body> {
    let query = match x.query() {
        "" => HealthQuery::default(),
        raw => HealthQuery::from_pairs(Query::parse(raw).iter()),
    };
    text(health.evaluate(endpoint, &query).await)
}

/// One check by its name, which may hold slashes; nothing when there is none of this name.
pub(super) async fn one(health: &Health, endpoint: Endpoint, x: &RequestContext) -> Option<Response<Body>> {
    let name = x.info.path.strip_prefix('/')?.strip_prefix(endpoint.name())?.strip_prefix('/')?;
    health.single(endpoint, name).await.map(text)
}

fn text(rendered: Rendered) -> Response<Body> {
    let code = StatusCode::from_u16(rendered.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    respond::plain(code, rendered.body)
}
