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
use super::state::{Shared, TestFaults};
use crate::control::CallError;
use crate::request::Response;
use crate::respond;
use crate::test_faults::{Fault, Rule};

/// Path of the collection.
pub(super) const PATH: &str = "/portico/test-faults";
/// Prefix of the paths of single faults.
pub(super) const BELOW: &str = "/portico/test-faults/";

/// Maximum size of a rule in bytes.
const MAX_BODY: usize = 64 * 1024;

#[derive(Serialize)]
struct Faults<T> {
    faults: Vec<T>,
}

pub(super) async fn collection(State(endpoints): Shared, request: Request) -> Response {
    let Some(faults) = &endpoints.test_faults else { return respond::not_found(&request) };
    let (parts, body) = request.into_parts();
    let answered = match parts.method {
        Method::GET => written(StatusCode::OK, &Faults { faults: faults.in_force.list() }),
        Method::POST => set(faults, &parts, body).await,
        Method::DELETE => {
            faults.in_force.clear();
            written(StatusCode::OK, &Status::success(None))
        }
        _ => Err(Box::new(Status::no_method())),
    };
    answered.unwrap_or_else(|status| respond::status(&parts, &status))
}

pub(super) async fn one(State(endpoints): Shared, request: Request) -> Response {
    let Some(faults) = &endpoints.test_faults else { return respond::not_found(&request) };
    let id = request.uri().path().strip_prefix(BELOW).unwrap_or_default();
    let found = match *request.method() {
        Method::GET => faults.in_force.get(id),
        Method::DELETE => faults.in_force.remove(id),
        _ => return respond::status(&request, &Status::no_method()),
    };
    let answered = match found {
        Some(listed) => written(StatusCode::OK, &listed),
        None => Err(Box::new(Status::failure(Reason::NotFound, format!("no fault has the id {id:?}")))),
    };
    answered.unwrap_or_else(|status| respond::status(&request, &status))
}

async fn set(faults: &TestFaults, request: &Parts, body: Body) -> Result<Response, Box<Status>> {
    let body = json_body(request, body, MAX_BODY).await?;
    let mut rule: Rule = serde_json::from_slice(&body)
        .map_err(|error| Status::bad_request(format!("the body is no fault: {error}")))?;
    rule.check().map_err(|error| Status::bad_request(error.to_string()))?;
    if let Fault::StaleReads { resource_version: resource_version @ None } = &mut rule.fault {
        let revision = faults.control.revision(request).await.map_err(|error| match error {
            CallError::Refused(status) => status,
            CallError::Message(error) => Box::new(Status::internal(error)),
        })?;
        *resource_version = Some(revision.to_string());
    }
    // Not 429, after which clients retry.
    let listed =
        faults.in_force.set(rule).map_err(|error| Status::failure(Reason::Invalid, error.to_string()))?;
    written(StatusCode::CREATED, &listed)
}

fn written(code: StatusCode, answer: &impl Serialize) -> Result<Response, Box<Status>> {
    let json = serde_json::to_vec(answer).map_err(Status::internal)?;
    Ok(respond::whole(code, JSON, json))
}
