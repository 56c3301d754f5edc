//! `/version`: the versions of Kubernetes and of Portico.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use http::StatusCode;

use super::state::{Shared, refusal};
use crate::in_force::InForce;
use crate::render::pretty;
use crate::request::Response;
use crate::respond;

pub(super) async fn version(
    State(endpoints): Shared,
    Extension(in_force): Extension<Arc<InForce>>,
    request: Request,
) -> Response {
    if let Some(refusal) = refusal(&request, "application/json") {
        return refusal;
    }
    let version = in_force.version.map(|effective| endpoints.version.clone().showing(effective));
    let json = serde_json::to_vec(version.as_ref().unwrap_or(&endpoints.version)).unwrap_or_default();
    respond::whole(StatusCode::OK, "application/json", pretty(&json))
}
