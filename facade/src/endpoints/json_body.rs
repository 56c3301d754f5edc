//! Bodies in JSON, whole, for the endpoints of the facade that take one.

use axum::body::{Body, Bytes, to_bytes};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use portico_machinery::Status;
use portico_machinery::status::Reason;

use crate::request::RequestView;

/// Its media type.
pub(super) const JSON: &str = "application/json";
/// That of answers of which each line is JSON.
pub(super) const JSON_LINES: &str = "application/json;stream=watch";

/// The body of a request, of at most so many bytes.
///
/// # Errors
/// 415 for another media type, 413 for a longer body.
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
