//! How refusals and small answers look on the wire: Go's plain text, and a negotiated Status.
//!
//! It must not know why something is refused.

use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};
use portico_machinery::Status;
use portico_machinery::accept::{Choice, Encoding, Form, Offer, negotiate};

use crate::body::Body;
use crate::context::RequestContext;
use crate::render::{Style, pretty, yaml};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// Text as Go's `http.Error` writes it: the message and one newline.
#[must_use]
pub fn text(code: StatusCode, message: &str) -> Response<Body> {
    plain(code, format!("{message}\n"))
}

/// Text exactly as it is.
#[must_use]
pub fn plain(code: StatusCode, body: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::whole(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    response
}

/// `404 page not found`, as Go's mux says it.
#[must_use]
pub fn not_found() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found")
}

/// Upstream's text for an error before negotiation: markup characters become entities.
#[must_use]
pub fn internal(x: &RequestContext, error: &str) -> Response<Body> {
    let uri = x.parts.uri.path_and_query().map_or("", |p| p.as_str());
    let message = format!("Internal Server Error: \"{uri}\": {error}");
    let message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text(StatusCode::INTERNAL_SERVER_ERROR, &message)
}

/// These bytes of this media type.
#[must_use]
pub fn whole(code: StatusCode, media_type: &'static str, body: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::whole(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// A refusal of the chain: as [`status()`], and a 403 must not be sniffed.
#[must_use]
pub fn forbidden(x: &RequestContext, refusal: &Status) -> Response<Body> {
    let mut response = status(x, refusal);
    if response.status() == StatusCode::FORBIDDEN {
        response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    }
    response
}

/// A Status in what the request accepts (8.2): nothing that fits is indented JSON with the Status's own code.
#[must_use]
pub fn status(x: &RequestContext, status: &Status) -> Response<Body> {
    status_for(&x.parts.headers, x.query(), status)
}

/// The same for a request of which only headers and query are at hand.
#[must_use]
pub fn status_for(headers: &HeaderMap, query: &str, status: &Status) -> Response<Body> {
    let header = |name| headers.get(name).and_then(|v: &HeaderValue| v.to_str().ok()).unwrap_or_default();
    let offer = Offer { encodings: &Encoding::ALL, forms: &[], sealed: true };
    let accept = header(http::header::ACCEPT);
    let fallback = Choice { encoding: Encoding::Json, form: Form::Object, pretty: true };
    let choice = negotiate(accept, offer).unwrap_or(fallback);
    let style = Style::of(query, header(http::header::USER_AGENT));
    let body = match choice.encoding {
        Encoding::Protobuf => status.to_protobuf(),
        Encoding::Yaml => in_yaml(status.to_json()),
        Encoding::Json if choice.pretty || style == Style::Pretty => pretty(&status.to_json()),
        Encoding::Json => status.to_json(),
    };
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = whole(code, choice.encoding.media_type(), body);
    if status.retry_after_seconds() > 0 {
        response.headers_mut().insert(RETRY_AFTER, status.retry_after_seconds().into());
    }
    response
}

fn in_yaml(json: Vec<u8>) -> Vec<u8> {
    yaml(&json).unwrap_or(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(accept: &'static str, agent: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::ACCEPT, HeaderValue::from_static(accept));
        headers.insert(http::header::USER_AGENT, HeaderValue::from_static(agent));
        headers
    }

    fn answer(accept: &'static str, agent: &'static str, query: &str) -> (String, String) {
        let response = status_for(&headers(accept, agent), query, &Status::unauthorized());
        let media = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        (media, String::from_utf8(response.body().as_whole().unwrap().to_vec()).unwrap())
    }

    #[test]
    fn a_status_is_written_in_what_is_accepted_and_never_becomes_a_406() {
        let (media, body) = answer("", "kubectl", "");
        assert_eq!(media, "application/json");
        assert!(body.starts_with(r#"{"kind":"Status""#) && body.ends_with("}\n"), "{body}");
        let (media, body) = answer("application/yaml", "kubectl", "");
        assert_eq!(media, "application/yaml");
        assert!(body.contains("reason: Unauthorized\n"), "{body}");
        for accept in ["text/html", "application/json;as=Table;g=meta.k8s.io;v=v1"] {
            let (media, body) = answer(accept, "kubectl", "");
            assert_eq!(media, "application/json");
            assert!(body.starts_with("{\n  \"kind\": \"Status\","), "{body}");
        }
    }

    #[test]
    fn curl_gets_indented_json_unless_it_declines() {
        assert!(answer("*/*", "curl/8", "").1.starts_with("{\n"));
        assert!(answer("*/*", "curl/8", "pretty=false").1.starts_with("{\""));
        assert!(answer("*/*", "kubectl", "pretty=1").1.starts_with("{\n"));
    }
}
