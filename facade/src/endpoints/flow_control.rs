//! `/debug/api_priority_and_fairness/`: levels, queues and requests as tables. 404 if priority and fairness is off.

use axum::extract::{Request, State};
use http::StatusCode;
use portico_flow::{Dispatcher, tables};
use portico_gostd::url::first_value;

use super::state::SharedEndpoints;
use crate::request::{RequestView, Response};
use crate::respond;

pub(super) async fn priority_levels(State(endpoints): SharedEndpoints) -> Response {
    serve_table(endpoints.flow.as_ref(), tables::priority_levels)
}

pub(super) async fn queues(State(endpoints): SharedEndpoints) -> Response {
    serve_table(endpoints.flow.as_ref(), tables::queues)
}

pub(super) async fn requests(State(endpoints): SharedEndpoints, request: Request) -> Response {
    let parameter = first_value(request.query(), "includeRequestDetails");
    let details = parameter.is_some_and(|value| !value.is_empty());
    serve_table(endpoints.flow.as_ref(), |flow| tables::requests(flow, details))
}

fn serve_table(flow: Option<&Dispatcher>, table: impl Fn(&Dispatcher) -> String) -> Response {
    match flow {
        Some(flow) => respond::with_body(StatusCode::OK, "text/plain; charset=utf-8", table(flow)),
        None => respond::page_not_found(),
    }
}
