//! `/debug/flags/v`: the verbosity of the log, which can be changed at runtime.

use axum::body::to_bytes;
use axum::extract::{Request, State};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, StatusCode};
use portico_kit::telemetry::Telemetry;

use super::state::SharedEndpoints;
use crate::request::Response;
use crate::respond;

/// Maximum size in bytes of the body, which is a short level.
const MAX_BODY: usize = 1024;

/// Serves the page of `DebugFlags.Index`, including its markup.
pub(super) async fn index() -> Response {
    let body = "<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\nflags:<br>\n\
        <table>\n<tr>v<br>\n</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n";
    respond::with_body(StatusCode::OK, "text/html; charset=utf-8", body)
}

pub(super) async fn verbosity(State(endpoints): SharedEndpoints, request: Request) -> Response {
    set_verbosity(endpoints.telemetry.as_ref(), request).await
}

/// Handles a PUT of a level (`StringFlagPutHandler`).
pub async fn set_verbosity(telemetry: Option<&Telemetry>, request: Request) -> Response {
    if request.method() != Method::PUT {
        return text(StatusCode::NOT_ACCEPTABLE, "unsupported http method");
    }
    let bytes = match to_bytes(request.into_body(), MAX_BODY).await {
        Ok(bytes) => bytes,
        Err(error) => {
            return text(StatusCode::BAD_REQUEST, &format!("error reading request body: {error}"));
        }
    };
    let level = String::from_utf8_lossy(&bytes).trim().to_owned();
    let result = match telemetry {
        Some(telemetry) => telemetry.set_level(&level).map_err(|e| e.to_string()),
        None => Err("this process's log level cannot be changed".to_owned()),
    };
    match result {
        Ok(()) => text(StatusCode::OK, &format!("successfully set klog.logging.verbosity to {level}")),
        Err(error) => text(StatusCode::BAD_REQUEST, &error),
    }
}

/// Plain text without a charset, as `writePlainText` writes it.
fn text(code: StatusCode, message: &str) -> Response {
    let mut response = respond::text(code, message);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}
