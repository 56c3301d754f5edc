//! Requests and responses between the HTTP code of the facade and this crate.

use std::borrow::Cow;
use std::net::IpAddr;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, header};
use portico_gostd::url::first_value;
use portico_kit::header_text;
use portico_machinery::Status;
use portico_machinery::accept::Encoding;
use portico_machinery::api_path::ApiPath;

/// One request for a path below `/api`, `/apis` or `/openapi`.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// HTTP method.
    pub method: &'a Method,
    /// Parsed path.
    pub path: ApiPath<'a>,
    /// Raw query.
    pub query: &'a str,
    /// All headers, of which `Accept`, `Accept-Encoding`, `If-None-Match` and the client address from proxies are read.
    pub headers: &'a HeaderMap,
    /// Address of the peer of the connection.
    pub client: Option<IpAddr>,
}

impl Request<'_> {
    pub(crate) fn header(&self, name: header::HeaderName) -> &str {
        header_text::first(self.headers, name)
    }

    /// Joins all `Accept` values.
    pub(crate) fn accept(&self) -> String {
        let values = self.headers.get_all(header::ACCEPT).iter();
        values.map(header_text::text).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn query_value(&self, name: &str) -> Cow<'_, str> {
        first_value(self.query, name).unwrap_or_default()
    }
}

/// A discovery document: JSON that the facade can indent (`pretty`) or convert to YAML, or protobuf. Compression is left to
/// the facade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Compact JSON with a final newline, or protobuf if that is the encoding.
    pub body: Bytes,
    /// Encoding of the response.
    pub encoding: Encoding,
    /// True if the Accept clause requests indented JSON.
    pub pretty: bool,
    /// `Content-Type` and, for aggregated documents, `ETag`, `Vary` and `Cache-Control`.
    pub headers: HeaderMap,
}

/// A response.
#[derive(Debug)]
pub enum Reply {
    /// 200 with a document, to be encoded as described.
    Document(Document),
    /// Complete response, already compressed if accepted.
    Ready(Response<Bytes>),
    /// Refusal, to be encoded as any Status.
    Refused(Box<Status>),
}

impl Reply {
    /// Creates a response with this code and without a body.
    pub(crate) fn empty(code: http::StatusCode, headers: HeaderMap) -> Self {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = code;
        *response.headers_mut() = headers;
        Self::Ready(response)
    }

    pub(crate) fn refused(status: Status) -> Self {
        Self::Refused(Box::new(status))
    }
}

/// Converts text of this crate to a header value; unprintable text becomes an empty value.
pub(crate) fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}
