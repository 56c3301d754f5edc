//! A request to a backend: the client's cleaned headers, and the proxy's own headers.
//!
//! The sender borrows it: the parts of an unsent request are put back, so that it can be sent on another connection.

use std::sync::Arc;

use http::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderValue};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{Method, Request, Version};
use http_body::Body as _;
use portico_kit::request_trace::RequestTrace;
use portico_kit::spans;

use crate::headers::{self, ProxyHeaders, set_target};
use crate::refusal::Refusal;
use crate::request_body::RequestBody;
use crate::request_target;

/// A request to a backend.
pub(crate) struct OutgoingRequest<'a> {
    pub(crate) method: Method,
    /// The request target.
    pub(crate) target: PathAndQuery,
    /// Headers of the client without reserved ones; also those of the proxy after their insertion.
    pub(crate) headers: HeaderMap,
    pub(crate) body: RequestBody,
    /// Headers of the proxy, until they are inserted into `headers`.
    proxy_headers: Option<ProxyHeaders<'a>>,
    /// `Host` of the client, if the target gets it.
    host: Option<HeaderValue>,
    /// Trace that records the stages of the request, if the client requested one.
    pub(crate) trace: Option<Arc<RequestTrace>>,
}

impl<'a> OutgoingRequest<'a> {
    /// Creates a request without the headers that must not reach a backend.
    pub(crate) fn new(
        parts: Parts,
        body: RequestBody,
        proxy_headers: ProxyHeaders<'a>,
    ) -> Result<Self, Refusal> {
        let target = request_target::path_and_query(&parts.uri)?;
        let mut headers = parts.headers;
        headers::strip_request(&mut headers);
        spans::inject(&mut headers);
        let body = body.with_trailers_of(&headers);
        Ok(Self {
            method: parts.method,
            target,
            headers,
            body,
            proxy_headers: Some(proxy_headers),
            host: None,
            trace: None,
        })
    }

    /// Creates a request with another path and query than the client's, and with the client's host.
    pub(crate) fn with_target(
        target: PathAndQuery,
        host: HeaderValue,
        parts: Parts,
        body: RequestBody,
        proxy_headers: ProxyHeaders<'a>,
    ) -> Self {
        let mut headers = parts.headers;
        headers::strip_request(&mut headers);
        let body = body.with_trailers_of(&headers);
        Self {
            method: parts.method,
            target,
            headers,
            body,
            proxy_headers: Some(proxy_headers),
            host: Some(host),
            trace: None,
        }
    }

    /// Creates a request of the proxy itself to this host, without a body.
    pub(crate) fn internal(
        method: Method,
        target: PathAndQuery,
        host: HeaderValue,
        headers: HeaderMap,
    ) -> Self {
        let body = RequestBody::empty();
        Self { method, target, headers, body, proxy_headers: None, host: Some(host), trace: None }
    }

    /// Inserts the proxy's headers into the header map; they replace headers of the client with the same names.
    pub(crate) fn insert_proxy_headers(&mut self) {
        if let Some(proxy_headers) = self.proxy_headers.take() {
            proxy_headers.insert_into(&mut self.headers, self.target.path());
        }
    }

    /// Takes the contents as an HTTP/1.1 request.
    pub(crate) fn take_http1(&mut self, authority: &HeaderValue) -> Request<RequestBody> {
        self.insert_proxy_headers();
        if self.host.is_none() {
            set_target(&mut self.headers, authority);
        }
        let host = self.host.as_ref().unwrap_or(authority).clone();
        self.headers.insert(HOST, host);
        if self.body.is_end_stream() && expects_body(&self.method) {
            self.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        self.take(Uri::from(self.target.clone()), Version::HTTP_11)
    }

    /// Takes the contents as an HTTP/2 request, whose URI contains the authority.
    pub(crate) fn take_http2(&mut self, authority: &HeaderValue) -> Request<RequestBody> {
        self.insert_proxy_headers();
        set_target(&mut self.headers, self.host.as_ref().unwrap_or(authority));
        // Set by an HTTP/1.1 attempt that sent nothing.
        self.headers.remove(HOST);
        self.take(absolute(authority, self.target.clone()), Version::HTTP_2)
    }

    fn take(&mut self, uri: Uri, version: Version) -> Request<RequestBody> {
        let mut request = Request::new(std::mem::take(&mut self.body));
        *request.headers_mut() = std::mem::take(&mut self.headers);
        *request.method_mut() = self.method.clone();
        (*request.version_mut(), *request.uri_mut()) = (version, uri);
        request
    }

    /// Returns the headers that a retry needs; only requests without a body are retried.
    pub(crate) fn save_headers(&mut self) -> HeaderMap {
        self.insert_proxy_headers();
        self.headers.clone()
    }

    /// Returns a copy for a mirror, without a body; without the caller's identity unless `with_identity`.
    pub(crate) fn copy_for_mirror(&self, with_identity: bool) -> OutgoingRequest<'static> {
        let mut headers = self.headers.clone();
        if !with_identity {
            headers::strip_client(&mut headers);
        }
        if let Some(proxy_headers) = self.proxy_headers {
            let copied_headers = if with_identity { proxy_headers } else { proxy_headers.anonymous() };
            copied_headers.insert_into(&mut headers, self.target.path());
        }
        OutgoingRequest { trace: None, ..self.repeat(&headers) }
    }

    /// Returns the request again, with the saved headers.
    pub(crate) fn repeat(&self, saved_headers: &HeaderMap) -> OutgoingRequest<'static> {
        OutgoingRequest {
            method: self.method.clone(),
            target: self.target.clone(),
            headers: saved_headers.clone(),
            body: RequestBody::empty(),
            proxy_headers: None,
            host: self.host.clone(),
            trace: self.trace.clone(),
        }
    }

    /// Restores the state that was saved.
    pub(crate) fn restore(&mut self, saved_headers: &HeaderMap) {
        (self.headers, self.body) = (saved_headers.clone(), RequestBody::empty());
    }

    /// Puts back the parts of a request that was not sent.
    pub(crate) fn put_back(&mut self, request: Request<RequestBody>) {
        let (parts, body) = request.into_parts();
        (self.headers, self.body) = (parts.headers, body);
    }
}

/// Returns true for methods whose requests have a `Content-Length` of 0 if there is no body.
fn expects_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

fn absolute(authority: &HeaderValue, target: PathAndQuery) -> Uri {
    let Ok(authority) = Authority::try_from(authority.as_bytes()) else { return Uri::from(target) };
    let mut parts = http::uri::Parts::default();
    (parts.scheme, parts.authority, parts.path_and_query) =
        (Some(Scheme::HTTPS), Some(authority), Some(target));
    Uri::from_parts(parts).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsent_http1_request_has_no_host_over_http2() {
        let (one, two) = (HeaderValue::from_static("one:1"), HeaderValue::from_static("two:2"));
        let target = PathAndQuery::from_static("/apis?a=b");
        let mut request = OutgoingRequest::internal(Method::POST, target, one.clone(), HeaderMap::new());
        let first = request.take_http1(&one);
        assert_eq!((&first.headers()[HOST], first.uri().to_string()), (&one, "/apis?a=b".to_owned()));
        request.put_back(first);
        let second = request.take_http2(&two);
        assert_eq!(second.uri(), "https://two:2/apis?a=b");
        assert!(!second.headers().contains_key(HOST));
    }
}
