//! `/grpc/<service>/<method>`: methods of the control service over HTTPS, with JSON.
//!
//! Only JSON is taken, which browsers send to another origin only if that allows it. Which methods there are, and what they
//! say, is [`crate::control::JsonMethod`]'s.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::routing::{MethodRouter, any};
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};
use portico_machinery::Status;
use portico_machinery::status::Reason;

use super::state::{Endpoints, Shared};
use crate::control::{CallError, JsonMethod};
use crate::request::{RequestView, Response};
use crate::respond;

const JSON: &str = "application/json";

/// The methods' paths, and their handlers.
pub(super) fn methods() -> impl Iterator<Item = (&'static str, MethodRouter<Arc<Endpoints>>)> {
    JsonMethod::ALL.into_iter().map(|(path, method)| {
        (
            path,
            any(move |State(endpoints): Shared, request: Request| async move {
                called(&endpoints, method, request).await
            }),
        )
    })
}

async fn called(endpoints: &Endpoints, method: JsonMethod, request: Request) -> Response {
    let Some(console) = &endpoints.console else { return respond::not_found(&request) };
    let (parts, body) = request.into_parts();
    if parts.method != Method::POST {
        return respond::status(&parts, &Status::no_method());
    }
    let media_type = parts.header(CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case(JSON) {
        let message = format!("the body's media type must be {JSON}");
        return respond::status(&parts, &Status::failure(Reason::UnsupportedMediaType, message));
    }
    let Ok(body) = to_bytes(body, console.control.max_body).await else {
        let message = format!("the body is longer than {} bytes, or broke off", console.control.max_body);
        return respond::status(&parts, &Status::failure(Reason::RequestEntityTooLarge, message));
    };
    match console.control.call(method, &parts, &body).await {
        Ok(json) => respond::whole(StatusCode::OK, JSON, json),
        Err(error @ CallError::Message(_)) => {
            respond::status(&parts, &Status::bad_request(error.to_string()))
        }
        Err(CallError::Refused(status)) => respond::status(&parts, &status),
    }
}
