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
    audit_id: Option<&'a HeaderValue>,
    /// What the client asked for, where that is another path than the backend is asked for.
    uri: Option<&'a HeaderValue>,
}

impl<'a> Words<'a> {
    /// Of this caller. An empty audit id is not said.
    pub(crate) fn new(
        identity: &'a Identity,
        client: Option<&'a ClientAddress>,
        audit_id: &'a HeaderValue,
    ) -> Result<Self, Refusal> {
        let audit_id = Some(audit_id).filter(|id| !id.is_empty());
        Ok(Self { identity: identity.headers()?, client, audit_id, uri: None })
    }

    /// Of nobody: what a connection leads to learns where a request came from and what it asked for. What the client
    /// says of host and scheme stays, as upstream leaves it.
    pub(crate) fn of_connection(client: &'a ClientAddress, uri: &'a HeaderValue) -> Self {
        Self { identity: &[], client: Some(client), audit_id: None, uri: Some(uri) }
    }

    /// Whether what a client says under this name gives way to what we say.
    pub(crate) fn replaces(&self, name: &HeaderName) -> bool {
        match name.as_str() {
            "x-forwarded-for" => self.client.is_some(),
            "x-forwarded-proto" => self.uri.is_none(),
            "x-forwarded-uri" => true,
            "audit-id" => self.audit_id.is_some(),
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
        if let Some(uri) = self.uri {
            headers.insert(URI, uri.clone());
        } else {
            headers.insert(PROTO, HTTPS);
            if let Ok(path) = HeaderValue::from_str(path) {
                headers.insert(URI, path);
            }
        }
        if let Some(audit_id) = self.audit_id {
            headers.insert(AUDIT_ID, audit_id.clone());
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
        if self.uri.is_none() {
            write_line(out, PROTO.as_str(), HTTPS.as_bytes());
        }
        write_line(out, URI.as_str(), self.uri.map_or(path.as_bytes(), HeaderValue::as_bytes));
        if let Some(audit_id) = self.audit_id {
            write_line(out, AUDIT_ID.as_str(), audit_id.as_bytes());
        }
    }
}
