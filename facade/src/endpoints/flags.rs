//! `/debug/flags/v`: the verbosity of the log, changed while running.

use axum::body::to_bytes;
use axum::extract::{Request, State};
use http::{Method, StatusCode};

use super::state::Shared;
use crate::request::Response;
use crate::respond;

/// A level is short.
const MAX_BODY: usize = 1024;

pub(super) async fn index() -> Response {
    let body = "<html>\n<head><title>/debug/flags/</title></head>\n<body>\n/debug/flags/<br>\n<br>\nflags:<br>\n\
        <a href=\"/debug/flags/v\">v</a> (PUT a new level)\n</body>\n</html>\n";
    respond::whole(StatusCode::OK, "text/html; charset=utf-8", body)
}

pub(super) async fn verbosity(State(endpoints): Shared, request: Request) -> Response {
    if request.method() != Method::PUT {
        return respond::text(StatusCode::NOT_ACCEPTABLE, "unsupported http method");
    }
    let Ok(bytes) = to_bytes(request.into_body(), MAX_BODY).await else {
        return respond::text(StatusCode::BAD_REQUEST, "error reading request body");
    };
    let level = String::from_utf8_lossy(&bytes).trim().to_owned();
    let result = match &endpoints.telemetry {
        Some(telemetry) => telemetry.set_level(&level).map_err(|e| e.to_string()),
        None => Err("this process's log level cannot be changed".to_owned()),
    };
    match result {
        Ok(()) => respond::plain(StatusCode::OK, format!("successfully set log level to {level}")),
        Err(error) => {
            respond::text(StatusCode::BAD_REQUEST, &format!("failed to set log level {level:?}: {error}"))
        }
    }
}
