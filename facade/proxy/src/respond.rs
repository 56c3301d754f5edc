//! Conversion of refusals to responses.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};
use portico_machinery::route::Route;

use crate::body::ProxyBody;
use crate::refusal::Refusal;

/// Extension of a response that this crate created itself, for `apiserver_request_terminations_total`
/// (component `aggregator`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Termination;

/// Converts a refusal to a response, marked with [`Termination`]: a Status, or upstream's plain text.
pub(crate) fn respond(refusal: &Refusal, route: &Route, plain_text: bool) -> Response<ProxyBody> {
    let status = refusal.status(route);
    let text = if plain_text { refusal.plain_text() } else { None };
    let (media, body) = match text {
        Some(text) => ("text/plain; charset=utf-8", text.into_bytes()),
        None => ("application/json", status.to_json()),
    };
    let length = body.len();
    let mut response = Response::new(ProxyBody::full(body));
    *response.status_mut() = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    response.extensions_mut().insert(Termination);
    response
}
