//! Responses for refusals and small documents: Go's plain text, and a negotiated Status.
//!
//! Does not depend on the reason of a refusal.

use std::sync::Arc;

use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT, X_CONTENT_TYPE_OPTIONS};
use portico_machinery::Status;
use portico_machinery::accept::{Choice, Encoding, Form, Offer, negotiate};
use portico_machinery::status::Details;

use crate::body::Body;
use crate::render::{JsonStyle, pretty, yaml};
use crate::request::{BeforeMuxComplete, RequestView, Response};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// Extension of a response whose body is this Status, encoded as negotiated.
#[derive(Clone, Debug)]
pub struct ResponseStatus(pub Arc<Status>);

/// Text as Go's `http.Error` writes it: the message and a newline.
#[must_use]
pub fn text(code: StatusCode, message: &str) -> Response {
    plain(code, format!("{message}\n"))
}

/// Unchanged text.
#[must_use]
pub fn plain(code: StatusCode, body: impl Into<bytes::Bytes>) -> Response {
    let mut response = Response::new(Body::full(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    response
}

/// `404 page not found`, as written by Go's mux.
#[must_use]
pub fn page_not_found() -> Response {
    text(StatusCode::NOT_FOUND, "404 page not found")
}

/// [`page_not_found`], or, for a request that arrived before all paths were registered, a 503 with `Retry-After`
/// (3.4).
#[must_use]
pub fn not_found(request: &impl RequestView) -> Response {
    if request.extension::<BeforeMuxComplete>().is_none() {
        return page_not_found();
    }
    let message =
        "the request has been made before all known HTTP paths have been installed, please try again";
    let refusal =
        Status::unavailable(message).with_details(Details { retry_after_seconds: 5, ..Details::default() });
    status(request, &refusal)
}

/// Upstream's text for an error before content negotiation: markup characters are escaped.
#[must_use]
pub fn internal(request: &impl RequestView, error: &str) -> Response {
    let uri = request.head().0.path_and_query().map_or("", |p| p.as_str());
    let message = format!("Internal Server Error: \"{uri}\": {error}");
    let message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text(StatusCode::INTERNAL_SERVER_ERROR, &message)
}

/// Response with a body of this media type.
#[must_use]
pub fn with_body(code: StatusCode, media_type: &'static str, body: impl Into<bytes::Bytes>) -> Response {
    let mut response = Response::new(Body::full(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// Refusal by impersonation or authorization: as [`status()`], with `nosniff`.
#[must_use]
pub fn forbidden(request: &impl RequestView, refusal: &Status) -> Response {
    let mut response = status(request, refusal);
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    response
}

/// A Status, encoded as negotiated (8.2); indented JSON, with the code of the Status, if no encoding is acceptable.
#[must_use]
pub fn status(request: &impl RequestView, status: &Status) -> Response {
    let offer = Offer { encodings: &Encoding::ALL, forms: &[], object_as_protobuf: true };
    let fallback = Choice { encoding: Encoding::Json, form: Form::Object, pretty: true };
    let negotiated = negotiate(request.header(ACCEPT), offer);
    let is_negotiated = negotiated.is_some();
    let choice = negotiated.unwrap_or(fallback);
    let style = JsonStyle::negotiate(request.query(), request.header(USER_AGENT));
    let body = match choice.encoding {
        Encoding::Protobuf => status.to_protobuf(),
        Encoding::Yaml => to_yaml(status.to_json()),
        Encoding::Json if choice.pretty || style == JsonStyle::Pretty => pretty(&status.to_json()),
        Encoding::Json => status.to_json(),
    };
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = with_body(code, choice.encoding.media_type(), body);
    if is_negotiated {
        response.extensions_mut().insert(ResponseStatus(status.clone().into()));
    }
    if status.retry_after_seconds() > 0 {
        response.headers_mut().insert(RETRY_AFTER, status.retry_after_seconds().into());
    }
    response
}

fn to_yaml(json: Vec<u8>) -> Vec<u8> {
    yaml(&json).unwrap_or(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn negotiated_status(accept: &'static str, agent: &'static str, query: &str) -> (String, String) {
        let request = http::Request::get(format!("/?{query}"));
        let request = request.header(ACCEPT, accept).header(USER_AGENT, agent).body(()).unwrap();
        let response = status(&request, &Status::unauthorized());
        let media = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        (media, String::from_utf8(response.body().as_full().unwrap().to_vec()).unwrap())
    }

    #[test]
    fn a_status_is_encoded_as_negotiated_and_never_becomes_a_406() {
        let (media, body) = negotiated_status("", "kubectl", "");
        assert_eq!(media, "application/json");
        assert!(body.starts_with(r#"{"kind":"Status""#) && body.ends_with("}\n"), "{body}");
        let (media, body) = negotiated_status("application/yaml", "kubectl", "");
        assert_eq!(media, "application/yaml");
        assert!(body.contains("reason: Unauthorized\n"), "{body}");
        for accept in ["text/html", "application/json;as=Table;g=meta.k8s.io;v=v1"] {
            let (media, body) = negotiated_status(accept, "kubectl", "");
            assert_eq!(media, "application/json");
            assert!(body.starts_with("{\n  \"kind\": \"Status\","), "{body}");
        }
    }

    #[test]
    fn curl_gets_indented_json_unless_it_declines() {
        assert!(negotiated_status("*/*", "curl/8", "").1.starts_with("{\n"));
        assert!(negotiated_status("*/*", "curl/8", "pretty=false").1.starts_with("{\""));
        assert!(negotiated_status("*/*", "kubectl", "pretty=1").1.starts_with("{\n"));
    }
}
