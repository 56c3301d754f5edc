//! HTTP/1 requests that Go's server refuses before any handler, with its messages: a missing, repeated or malformed authority,
//! and transfer codings other than chunked.
//!
//! hyper accepts them. Intermediaries interpret them differently, which allows request smuggling.

use http::header::{CONNECTION, HOST, HeaderValue, TRANSFER_ENCODING};
use http::{Method, Request, Response, StatusCode, Version};

use crate::body::Body;
use crate::respond;

/// Returns the refusal of a malformed request; `None` for all others.
pub(super) fn refusal<B>(request: &Request<B>) -> Option<Response<Body>> {
    if request.version() > Version::HTTP_11 {
        return None;
    }
    let (code, text) = diagnostic(request)?;
    let mut response = respond::plain(code, text);
    // Go writes these responses without its default headers.
    response.headers_mut().remove(http::header::X_CONTENT_TYPE_OPTIONS);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    Some(response)
}

fn diagnostic<B>(request: &Request<B>) -> Option<(StatusCode, &'static str)> {
    let headers = request.headers();
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next()
        && (codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
    {
        return Some((StatusCode::NOT_IMPLEMENTED, "Unsupported transfer encoding"));
    }
    let mut hosts = headers.get_all(HOST).iter();
    let text = match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => "400 Bad Request",
        (Some(host), None) if !host.as_bytes().iter().copied().all(is_host_byte) => {
            "400 Bad Request: malformed Host header"
        }
        (None, _) if request.version() == Version::HTTP_11 && request.method() != Method::CONNECT => {
            "400 Bad Request: missing required Host header"
        }
        _ => return None,
    };
    Some((StatusCode::BAD_REQUEST, text))
}

/// Upstream's ValidHostHeader: the characters that a host or port can contain, in any order.
fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!$%&()*+,-.:;=[']_~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(version: Version, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::get("/").version(version);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        refusal(&request.body(()).unwrap()).map_or(200, |response| response.status().as_u16())
    }

    #[test]
    fn requests_are_refused_as_gos_server_refuses_them() {
        let rows: [(&[(&str, &str)], u16); 12] = [
            (&[("host", "a")], 200),
            (&[("host", "")], 200),
            (&[("host", "[::1]:6443")], 200),
            (&[], 400),
            (&[("host", "a"), ("host", "a")], 400),
            (&[("host", "a b")], 400),
            (&[("host", "a/b")], 400),
            (&[("host", "a@b")], 400),
            (&[("host", "a"), ("transfer-encoding", "Chunked")], 200),
            (&[("host", "a"), ("transfer-encoding", "identity, chunked")], 501),
            (&[("host", "a"), ("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")], 501),
            (&[("host", "a"), ("transfer-encoding", "gzip")], 501),
        ];
        for (headers, want) in rows {
            assert_eq!(code(Version::HTTP_11, headers), want, "{headers:?}");
        }
        assert_eq!(code(Version::HTTP_10, &[]), 200);
        assert_eq!(code(Version::HTTP_2, &[]), 200);
    }
}
