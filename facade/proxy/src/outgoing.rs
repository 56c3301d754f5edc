//! A request on its way to a backend: what the client said, cleaned, and our own words beside it.
//!
//! It is lent to whoever sends it, so that trying another connection costs nothing. Over HTTP/1.1 our words are
//! written straight into the connection's buffer; what needs them as headers (HTTP/2, upgrades) settles them first.

use http::header::{HOST, HeaderMap, HeaderValue};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{Method, Request, Version};

use crate::body::RequestBody;
use crate::headers::{self, Words, set_target};
use crate::location;
use crate::refusal::Refusal;

/// See the module.
pub(crate) struct Outgoing<'a> {
    pub(crate) method: Method,
    /// The request target.
    pub(crate) target: PathAndQuery,
    /// The client's, less what it must not say; and our words, once they are settled.
    pub(crate) headers: HeaderMap,
    pub(crate) body: RequestBody,
    /// Until they are settled.
    words: Option<Words<'a>>,
    /// What the client calls the host, where the target is to hear that.
    host: Option<HeaderValue>,
}

impl<'a> Outgoing<'a> {
    /// Takes out of a request what must not reach a backend.
    pub(crate) fn new(parts: Parts, body: RequestBody, words: Words<'a>) -> Result<Self, Refusal> {
        let target = location::path_and_query(&parts.uri)?;
        let mut headers = parts.headers;
        headers::strip_request(&mut headers);
        let body = body.behind(&headers);
        Ok(Self { method: parts.method, target, headers, body, words: Some(words), host: None })
    }

    /// The same for another path and query than the client named; the host stays as the client calls it.
    pub(crate) fn elsewhere(
        target: PathAndQuery,
        host: HeaderValue,
        parts: Parts,
        body: RequestBody,
        words: Words<'a>,
    ) -> Self {
        let mut headers = parts.headers;
        headers::strip_request(&mut headers);
        let body = body.behind(&headers);
        Self { method: parts.method, target, headers, body, words: Some(words), host: Some(host) }
    }

    /// A GET of our own, to this host.
    pub(crate) fn get(target: PathAndQuery, host: HeaderValue, headers: HeaderMap) -> Self {
        let body = RequestBody::empty();
        Self { method: Method::GET, target, headers, body, words: None, host: Some(host) }
    }

    /// Puts our words among the headers, in place of what the client says of the same.
    pub(crate) fn settle(&mut self) {
        if let Some(words) = self.words.take() {
            words.put(&mut self.headers, self.target.path());
        }
    }

    /// The lines of an HTTP/1.1 head for this target, but for those that frame the body.
    pub(crate) fn write(&self, out: &mut Vec<u8>, authority: &HeaderValue) {
        match &self.host {
            Some(host) => headers::write_line(out, HOST.as_str(), host.as_bytes()),
            None => headers::write_target(out, authority),
        }
        if let Some(words) = &self.words {
            words.write(out, &self.headers, self.target.path());
        }
        for (name, value) in &self.headers {
            let target = if self.host.is_some() { *name == HOST } else { headers::names_target(name) };
            let anew = target || self.words.as_ref().is_some_and(|w| w.replaces(name));
            if !anew && !headers::frames_body(name) {
                headers::write_line(out, name.as_str(), value.as_bytes());
            }
        }
    }

    /// As HTTP/2 wants it, where the authority is part of the URI. What it holds is gone from here.
    pub(crate) fn take_http2(&mut self, authority: &HeaderValue) -> Request<RequestBody> {
        self.settle();
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
