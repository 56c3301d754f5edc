//! `/grpc/<service>/<method>`: methods of the control service over HTTPS, with JSON.
//!
//! Only JSON is accepted, which browsers send to another origin only if that origin allows it. The methods and their messages are
//! defined by [`crate::control::JsonMethod`].

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::routing::{MethodRouter, any};
use futures::StreamExt;
use http::{Method, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use portico_machinery::Status;

use super::json_body::{JSON, JSON_LINES, json_body};
use super::state::{Endpoints, SharedEndpoints};
use crate::body::Body;
use crate::control::{CallError, JsonAnswer, JsonMethod};
use crate::request::Response;
use crate::respond;

/// Returns the paths of the methods with their handlers.
pub(super) fn methods() -> impl Iterator<Item = (&'static str, MethodRouter<Arc<Endpoints>>)> {
    JsonMethod::ALL.into_iter().map(|(path, method)| {
        (
            path,
            any(move |State(endpoints): SharedEndpoints, request: Request| async move {
                call_method(&endpoints, method, request).await
            }),
        )
    })
}

async fn call_method(endpoints: &Endpoints, method: JsonMethod, request: Request) -> Response {
    let Some(console) = &endpoints.console else { return respond::not_found(&request) };
    let (parts, body) = request.into_parts();
    if parts.method != Method::POST {
        return respond::status(&parts, &Status::method_not_allowed());
    }
    let body = match json_body(&parts, body, console.control.max_body).await {
        Ok(body) => body,
        Err(status) => return respond::status(&parts, &status),
    };
    match console.control.call(method, &parts, &body).await {
        Ok(JsonAnswer::Whole(json)) => respond::with_body(StatusCode::OK, JSON, json),
        Ok(JsonAnswer::Lines(lines)) => {
            let mut response = respond::with_body(StatusCode::OK, JSON_LINES, "");
            let stopping = console.stopping.clone();
            let lines = lines.take_until(async move { stopping.signaled().await });
            let frames = lines.map(|line| Ok::<_, Infallible>(Frame::data(line)));
            *response.body_mut() = Body::streamed(StreamBody::new(frames));
            response
        }
        Err(error @ CallError::Message(_)) => {
            respond::status(&parts, &Status::bad_request(error.to_string()))
        }
        Err(CallError::Refused(status)) => respond::status(&parts, &status),
    }
}
