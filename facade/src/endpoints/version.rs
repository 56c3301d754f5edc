//! `/version`: the versions of Kubernetes and of Portico.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use http::StatusCode;

use super::state::{SharedEndpoints, refusal};
use crate::active_config::ActiveConfig;
use crate::render::pretty;
use crate::request::Response;
use crate::respond;

pub(super) async fn version(
    State(endpoints): SharedEndpoints,
    Extension(in_force): Extension<Arc<ActiveConfig>>,
    request: Request,
) -> Response {
    if let Some(refusal) = refusal(&request, "application/json") {
        return refusal;
    }
    let version =
        in_force.version.map(|effective| endpoints.version.clone().with_effective_version(effective));
    let json = serde_json::to_vec(version.as_ref().unwrap_or(&endpoints.version)).unwrap_or_default();
    respond::with_body(StatusCode::OK, "application/json", pretty(&json))
}
