//! `/console/data/backends`: what this facade's own requests have shown of backends: their addresses, and which of them are not dialled.

use std::sync::Arc;

use axum::extract::{Extension, Request};
use http::{Method, StatusCode};
use jiff::Timestamp;
use portico_machinery::Status;
use portico_proxy::{Stage, TargetState, Upstream};
use serde::Serialize;

use crate::in_force::InForce;
use crate::request::Response;
use crate::respond;

#[derive(Serialize)]
struct Backends {
    backends: Vec<Backend>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Backend {
    /// The APIService's name.
    name: String,
    /// Requests under way.
    in_flight: usize,
    /// None before the first request.
    targets: Vec<Target>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    target: String,
    /// Whether only probes are sent there.
    circuit_open: bool,
    failures: u32,
    /// The stage at which the last dial failed; empty when it did not.
    failed: &'static str,
    message: String,
    /// RFC 3339; empty before the first dial.
    since: String,
}

/// The backends of the routes that this request goes by.
pub async fn backends(Extension(in_force): Extension<Arc<InForce>>, request: Request) -> Response {
    if request.method() != Method::GET {
        return respond::status(&request, &Status::no_method());
    }
    let mut backends: Vec<Backend> = in_force
        .routes
        .routes()
        .filter(|upstream| upstream.route().backend.is_some())
        .map(|upstream| backend(upstream))
        .collect();
    backends.sort_by(|a, b| a.name.cmp(&b.name));
    match serde_json::to_vec(&Backends { backends }) {
        Ok(json) => respond::whole(StatusCode::OK, "application/json", json),
        Err(error) => respond::internal(&request, &error.to_string()),
    }
}

fn backend(upstream: &Upstream) -> Backend {
    let targets = upstream.target_states().into_iter().map(target).collect();
    Backend { name: upstream.route().name.clone(), in_flight: upstream.in_flight(), targets }
}

fn target(state: TargetState) -> Target {
    let since = state.since_ms.and_then(|ms| Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok());
    Target {
        target: state.target,
        circuit_open: state.is_open,
        failures: state.failures,
        failed: state.failed.map_or("", Stage::as_str),
        message: state.message,
        since: since.map(|since| since.to_string()).unwrap_or_default(),
    }
}
