//! `/`: the listed paths, sorted.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Extension, State};
use http::StatusCode;
use portico_kit::health::HealthEndpoint;
use portico_machinery::discovery::Source;

use super::state::SharedEndpoints;
use crate::active_config::ActiveConfig;
use crate::render::pretty;
use crate::request::Response;
use crate::respond;

#[derive(serde::Serialize)]
struct Paths {
    paths: BTreeSet<Arc<str>>,
}

/// Serves the paths of the routes that were active when the request arrived.
pub(super) async fn paths(
    State(endpoints): SharedEndpoints,
    Extension(in_force): Extension<Arc<ActiveConfig>>,
) -> Response {
    let table = &in_force.routes;
    let mut paths = table.listed_paths();
    paths.extend(HealthEndpoint::ALL.into_iter().flat_map(|e| endpoints.health.paths(e)).map(Arc::from));
    for served in table.served().filter(|s| s.source == Source::Builtin) {
        let (root, group) = match served.group.as_str() {
            "" => ("/api", "/api".to_owned()),
            group => ("/apis", format!("/apis/{group}")),
        };
        paths.insert(root.into());
        paths.insert(format!("{group}/{}", served.version).into());
        paths.insert(group.into());
    }
    let json = serde_json::to_vec(&Paths { paths }).unwrap_or_default();
    respond::with_body(StatusCode::OK, "application/json", pretty(&json))
}
