//! `/console/data/last-hour`: samples that this facade takes every ten seconds.

use axum::extract::{Request, State};

use super::lines::lines;
use crate::endpoints::state::SharedEndpoints;
use crate::request::Response;
use crate::respond;

/// Serves one line per sample.
pub async fn last_hour(State(endpoints): SharedEndpoints, request: Request) -> Response {
    match &endpoints.console {
        Some(console) => lines(&request, &console.last_hour, &console.stopping),
        None => respond::not_found(&request),
    }
}
