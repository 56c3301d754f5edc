//! What is asked for and what is answered, between the facade's HTTP and this crate.

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
    /// The method.
    pub method: &'a Method,
    /// Where its path leads.
    pub path: ApiPath<'a>,
    /// The raw query.
    pub query: &'a str,
    /// All headers; `Accept`, `Accept-Encoding`, `If-None-Match` and what proxies say of the client are looked at.
    pub headers: &'a HeaderMap,
    /// The other end of the connection.
    pub client: Option<IpAddr>,
}

impl Request<'_> {
    pub(crate) fn header(&self, name: header::HeaderName) -> &str {
        header_text::first(self.headers, name)
    }

    /// All `Accept` values as one.
    pub(crate) fn accept(&self) -> String {
        let values = self.headers.get_all(header::ACCEPT).iter();
        values.map(header_text::text).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn query_value(&self, name: &str) -> Cow<'_, str> {
        first_value(self.query, name).unwrap_or_default()
    }
}

/// A discovery document: JSON that the facade may still indent (`pretty`) or write as YAML, or protobuf; the facade
/// compresses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Compact JSON with its closing newline, or protobuf when it is to be that.
    pub body: Bytes,
    /// What it is to be written in.
    pub encoding: Encoding,
    /// Whether the Accept clause itself asked for indented JSON.
    pub pretty: bool,
    /// `Content-Type` and, for aggregated documents, `ETag`, `Vary` and `Cache-Control`.
    pub headers: HeaderMap,
}

/// An answer.
#[derive(Debug)]
pub enum Reply {
    /// 200 with a document to be written as it says.
    Document(Document),
    /// To be sent as it is, compressed already where that was accepted.
    Ready(Response<Bytes>),
    /// A refusal, to be written as any Status.
    Refused(Box<Status>),
}

impl Reply {
    /// An answer of this code without a body.
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

/// A header value of text that we made ourselves; unprintable text becomes an empty value.
pub(crate) fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}
