//! Reads complete JSON bodies, for endpoints that accept one.

use axum::body::{Body, Bytes, to_bytes};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use portico_machinery::Status;
use portico_machinery::status::Reason;

use crate::request::RequestView;

/// Media type of request bodies.
pub(super) const JSON: &str = "application/json";
/// Media type of responses with one JSON value per line.
pub(super) const JSON_LINES: &str = "application/json;stream=watch";

/// Reads the body of a request, of at most `max` bytes.
///
/// # Errors
/// 415 for another media type, 413 for a larger body.
pub(super) async fn json_body(request: &Parts, body: Body, max: usize) -> Result<Bytes, Box<Status>> {
    let media_type = request.header(CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case(JSON) {
        let message = format!("the body's media type must be {JSON}");
        return Err(Box::new(Status::failure(Reason::UnsupportedMediaType, message)));
    }
    to_bytes(body, max).await.map_err(|_| {
        let message = format!("the body is longer than {max} bytes, or incomplete");
        Box::new(Status::failure(Reason::RequestEntityTooLarge, message))
    })
}
