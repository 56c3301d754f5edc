//! `/debug/api_priority_and_fairness/`: levels, queues and requests as tables. 404 if priority and fairness is off.

use axum::extract::{Request, State};
use http::StatusCode;
use portico_flow::{Dispatcher, tables};
use portico_gostd::url::first_value;

use super::state::Shared;
use crate::request::{RequestView, Response};
use crate::respond;

pub(super) async fn priority_levels(State(endpoints): Shared) -> Response {
    shown(endpoints.flow.as_ref(), tables::priority_levels)
}

pub(super) async fn queues(State(endpoints): Shared) -> Response {
    shown(endpoints.flow.as_ref(), tables::queues)
}

pub(super) async fn requests(State(endpoints): Shared, request: Request) -> Response {
    let wanted = first_value(request.query(), "includeRequestDetails");
    let details = wanted.is_some_and(|value| !value.is_empty());
    shown(endpoints.flow.as_ref(), |flow| tables::requests(flow, details))
}

fn shown(flow: Option<&Dispatcher>, table: impl Fn(&Dispatcher) -> String) -> Response {
    match flow {
        Some(flow) => respond::whole(StatusCode::OK, "text/plain; charset=utf-8", table(flow)),
        None => respond::page_not_found(),
    }
}
