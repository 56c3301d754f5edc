//! What the proxy itself says of a request: who calls, from where, for which path, under which audit id.
//!
//! Said either as headers or as lines of an HTTP/1.1 head, with the same outcome.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::forwarded::{self, AUDIT_ID, ClientAddress, FOR, PROTO, URI};
use super::identity::{Header, Identity};
use super::write_line;
use crate::refusal::Refusal;

/// Headers besides the caller's identity: four of ours, and two that name the target.
const OTHERS: usize = 6;
/// We serve nothing else.
const HTTPS: HeaderValue = HeaderValue::from_static("https");

/// See the module. Nothing is copied before it is said.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    identity: &'a [Header],
    client: Option<&'a ClientAddress>,
    audit_id: &'a HeaderValue,
}

impl<'a> Words<'a> {
    /// Of this caller. An empty audit id is not said.
    pub(crate) fn new(
        identity: &'a Identity,
        client: Option<&'a ClientAddress>,
        audit_id: &'a HeaderValue,
    ) -> Result<Self, Refusal> {
        Ok(Self { identity: identity.headers()?, client, audit_id })
    }

    /// Whether what a client says under this name gives way to what we say.
    pub(crate) fn replaces(&self, name: &HeaderName) -> bool {
        match name.as_str() {
            "x-forwarded-for" => self.client.is_some(),
            "x-forwarded-proto" | "x-forwarded-uri" => true,
            "audit-id" => !self.audit_id.is_empty(),
            _ => false,
        }
    }

    /// Says them as headers. `path` is the path that the backend is asked for. Of the caller's identity nothing may
    /// stand there before.
    pub(crate) fn put(&self, headers: &mut HeaderMap, path: &str) {
        headers.reserve(self.identity.len() + OTHERS);
        for (name, value) in self.identity {
            headers.append(name, value.clone());
        }
        if let Some(list) = self.client.and_then(|client| forwarded::list(headers, client)) {
            headers.insert(FOR, list);
        }
        headers.insert(PROTO, HTTPS);
        if let Ok(path) = HeaderValue::from_str(path) {
            headers.insert(URI, path);
        }
        if !self.audit_id.is_empty() {
            headers.insert(AUDIT_ID, self.audit_id.clone());
        }
    }

    /// Says them as lines beside these headers of the client.
    pub(crate) fn write(&self, out: &mut Vec<u8>, headers: &HeaderMap, path: &str) {
        for (name, value) in self.identity {
            write_line(out, name.as_str(), value.as_bytes());
        }
        if let Some(list) = self.client.and_then(|client| forwarded::list(headers, client)) {
            write_line(out, FOR.as_str(), list.as_bytes());
        }
        write_line(out, PROTO.as_str(), HTTPS.as_bytes());
        write_line(out, URI.as_str(), path.as_bytes());
        if !self.audit_id.is_empty() {
            write_line(out, AUDIT_ID.as_str(), self.audit_id.as_bytes());
        }
    }
}
