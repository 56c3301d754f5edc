//! `/version`: which Kubernetes this is, and which Portico.

use axum::extract::{Request, State};
use http::StatusCode;

use super::state::{Shared, refusal};
use crate::render::pretty;
use crate::request::Response;
use crate::respond;

pub(super) async fn version(State(endpoints): Shared, request: Request) -> Response {
    if let Some(refusal) = refusal(&request, "application/json") {
        return refusal;
    }
    let json = serde_json::to_vec(&endpoints.version).unwrap_or_default();
    respond::whole(StatusCode::OK, "application/json", pretty(&json))
}
