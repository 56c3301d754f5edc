//! `/portico/test-faults`: GET lists the faults that are set, POST sets one, DELETE removes all. Paths below it serve GET and
//! DELETE of one fault, by ID.
//!
//! Access requires permission for these paths, which only the bootstrap role cluster-admin has.

use axum::body::Body;
use axum::extract::{Request, State};
use http::request::Parts;
use http::{Method, StatusCode};
use portico_machinery::Status;
use portico_machinery::status::Reason;
use serde::Serialize;

use super::json_body::{JSON, json_body};
use super::state::{SharedEndpoints, TestFaults};
use crate::control::CallError;
use crate::request::Response;
use crate::respond;
use crate::test_faults::{Fault, Rule};

/// Path of the collection.
pub(super) const PATH: &str = "/portico/test-faults";
/// Prefix of the paths of single faults.
pub(super) const PREFIX: &str = "/portico/test-faults/";

/// Maximum size of a rule in bytes.
const MAX_BODY: usize = 64 * 1024;

#[derive(Serialize)]
struct Faults<T> {
    faults: Vec<T>,
}

pub(super) async fn collection(State(endpoints): SharedEndpoints, request: Request) -> Response {
    let Some(faults) = &endpoints.test_faults else { return respond::not_found(&request) };
    let (parts, body) = request.into_parts();
    let result = match parts.method {
        Method::GET => json_response(StatusCode::OK, &Faults { faults: faults.faults.list() }),
        Method::POST => set(faults, &parts, body).await,
        Method::DELETE => {
            faults.faults.clear();
            json_response(StatusCode::OK, &Status::success(None))
        }
        _ => Err(Box::new(Status::method_not_allowed())),
    };
    result.unwrap_or_else(|status| respond::status(&parts, &status))
}

pub(super) async fn single(State(endpoints): SharedEndpoints, request: Request) -> Response {
    let Some(faults) = &endpoints.test_faults else { return respond::not_found(&request) };
    let id = request.uri().path().strip_prefix(PREFIX).unwrap_or_default();
    let fault = match *request.method() {
        Method::GET => faults.faults.get(id),
        Method::DELETE => faults.faults.remove(id),
        _ => return respond::status(&request, &Status::method_not_allowed()),
    };
    let result = match fault {
        Some(fault) => json_response(StatusCode::OK, &fault),
        None => Err(Box::new(Status::failure(Reason::NotFound, format!("no fault has the id {id:?}")))),
    };
    result.unwrap_or_else(|status| respond::status(&request, &status))
}

async fn set(faults: &TestFaults, request: &Parts, body: Body) -> Result<Response, Box<Status>> {
    let body = json_body(request, body, MAX_BODY).await?;
    let mut rule: Rule = serde_json::from_slice(&body)
        .map_err(|error| Status::bad_request(format!("the body is no fault: {error}")))?;
    rule.validate().map_err(|error| Status::bad_request(error.to_string()))?;
    if let Fault::StaleReads { resource_version: resource_version @ None } = &mut rule.fault {
        let revision = faults.control.revision(request).await.map_err(|error| match error {
            CallError::Refused(status) => status,
            CallError::Message(error) => Box::new(Status::internal(error)),
        })?;
        *resource_version = Some(revision.to_string());
    }
    // Not 429, after which clients retry.
    let fault =
        faults.faults.set(rule).map_err(|error| Status::failure(Reason::Invalid, error.to_string()))?;
    json_response(StatusCode::CREATED, &fault)
}

fn json_response(code: StatusCode, answer: &impl Serialize) -> Result<Response, Box<Status>> {
    let json = serde_json::to_vec(answer).map_err(Status::internal)?;
    Ok(respond::with_body(code, JSON, json))
}
