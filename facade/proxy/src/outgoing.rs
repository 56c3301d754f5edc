//! A request to a backend: the client's headers, cleaned, and the proxy's own headers beside them.
//!
//! It is borrowed by whoever sends it, so that trying another connection costs nothing. Over HTTP/1.1 the proxy's headers
//! are written straight into the connection's buffer; HTTP/2 and upgrades insert them into the header map first.

use http::header::{HOST, HeaderMap, HeaderValue};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{Method, Request, Version};

use crate::headers::{self, ProxyHeaders, set_target};
use crate::location;
use crate::refusal::Refusal;
use crate::request_body::RequestBody;

/// See the module.
pub(crate) struct Outgoing<'a> {
    pub(crate) method: Method,
    /// The request target.
    pub(crate) target: PathAndQuery,
    /// The client's, without those that it must not set; and the proxy's, once they are inserted.
    pub(crate) headers: HeaderMap,
    pub(crate) body: RequestBody,
    /// Until they are inserted into `headers`.
    proxy_headers: Option<ProxyHeaders<'a>>,
    /// The client's `Host`, where the target gets that one.
    host: Option<HeaderValue>,
}

impl<'a> Outgoing<'a> {
    /// Takes out of a request what must not reach a backend.
    pub(crate) fn new(
        parts: Parts,
        body: RequestBody,
        proxy_headers: ProxyHeaders<'a>,
    ) -> Result<Self, Refusal> {
        let target = location::path_and_query(&parts.uri)?;
        let mut headers = parts.headers;
        headers::strip_request(&mut headers);
        let body = body.behind(&headers);
        Ok(Self {
            method: parts.method,
            target,
            headers,
            body,
            proxy_headers: Some(proxy_headers),
            host: None,
        })
    }

    /// The same for another path and query than the client named; the host stays as the client calls it.
    pub(crate) fn elsewhere(
        target: PathAndQuery,
        host: HeaderValue,
        parts: Parts,
        body: RequestBody,
        proxy_headers: ProxyHeaders<'a>,
    ) -> Self {
        let mut headers = parts.headers;
        headers::strip_request(&mut headers);
        let body = body.behind(&headers);
        Self {
            method: parts.method,
            target,
            headers,
            body,
            proxy_headers: Some(proxy_headers),
            host: Some(host),
        }
    }

    /// A GET of our own, to this host.
    pub(crate) fn get(target: PathAndQuery, host: HeaderValue, headers: HeaderMap) -> Self {
        let body = RequestBody::empty();
        Self { method: Method::GET, target, headers, body, proxy_headers: None, host: Some(host) }
    }

    /// Inserts the proxy's headers into the header map, in place of the client's of the same names.
    pub(crate) fn insert_proxy_headers(&mut self) {
        if let Some(proxy_headers) = self.proxy_headers.take() {
            proxy_headers.insert_into(&mut self.headers, self.target.path());
        }
    }

    /// The lines of an HTTP/1.1 head for this target, but for those that frame the body.
    pub(crate) fn write(&self, out: &mut Vec<u8>, authority: &HeaderValue) {
        match &self.host {
            Some(host) => headers::write_line(out, HOST.as_str(), host.as_bytes()),
            None => headers::write_target(out, authority),
        }
        if let Some(proxy_headers) = &self.proxy_headers {
            proxy_headers.write_lines(out, &self.headers, self.target.path());
        }
        for (name, value) in &self.headers {
            let target = if self.host.is_some() { *name == HOST } else { headers::names_target(name) };
            let anew = target || self.proxy_headers.as_ref().is_some_and(|ours| ours.replaces(name));
            if !anew && !headers::frames_body(name) {
                headers::write_line(out, name.as_str(), value.as_bytes());
            }
        }
    }

    /// As HTTP/2 wants it, where the authority is part of the URI. What it holds is gone from here.
    pub(crate) fn take_http2(&mut self, authority: &HeaderValue) -> Request<RequestBody> {
        self.insert_proxy_headers();
        set_target(&mut self.headers, self.host.as_ref().unwrap_or(authority));
        let mut request = Request::new(std::mem::take(&mut self.body));
        *request.headers_mut() = std::mem::take(&mut self.headers);
        *request.method_mut() = self.method.clone();
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = absolute(authority, self.target.clone());
        request
    }

    /// Nothing of it was sent.
    pub(crate) fn take_back(&mut self, request: Request<RequestBody>) {
        let (parts, body) = request.into_parts();
        (self.headers, self.body) = (parts.headers, body);
    }
}

fn absolute(authority: &HeaderValue, target: PathAndQuery) -> Uri {
    let Ok(authority) = Authority::try_from(authority.as_bytes()) else { return Uri::from(target) };
    let mut parts = http::uri::Parts::default();
    (parts.scheme, parts.authority, parts.path_and_query) =
        (Some(Scheme::HTTPS), Some(authority), Some(target));
    Uri::from_parts(parts).unwrap_or_default()
}
