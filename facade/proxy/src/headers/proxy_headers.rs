//! The headers that the proxy itself sets on a request: the caller, its address, the path, the audit id.
//!
//! Either inserted into a header map or written as lines of an HTTP/1.1 head, with the same outcome.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::forwarded::{self, AUDIT_ID, ClientAddress, FOR, PROTO, URI};
use super::identity::{Header, Identity};
use super::line::write_line;
use crate::refusal::Refusal;

/// Headers besides the caller's identity: four of ours, and two that name the target.
const OTHERS: usize = 6;
/// We serve nothing else.
const HTTPS: HeaderValue = HeaderValue::from_static("https");

/// See the module. Nothing is copied before it is inserted or written.
#[derive(Clone, Copy)]
pub(crate) struct ProxyHeaders<'a> {
    identity: &'a [Header],
    client: Option<&'a ClientAddress>,
    audit_id: Option<&'a HeaderValue>,
    /// What the client asked for, where that is another path than the backend is asked for.
    uri: Option<&'a HeaderValue>,
}

impl<'a> ProxyHeaders<'a> {
    /// For this caller. An empty audit id is not sent.
    pub(crate) fn new(
        identity: &'a Identity,
        client: Option<&'a ClientAddress>,
        audit_id: &'a HeaderValue,
    ) -> Result<Self, Refusal> {
        let audit_id = Some(audit_id).filter(|id| !id.is_empty());
        Ok(Self { identity: identity.headers()?, client, audit_id, uri: None })
    }

    /// For a connection to a pod, service or node: the client's address and the path that it asked for, no identity. The
    /// client's own headers for host and scheme stay, as upstream leaves them.
    pub(crate) fn of_connection(client: &'a ClientAddress, uri: &'a HeaderValue) -> Self {
        Self { identity: &[], client: Some(client), audit_id: None, uri: Some(uri) }
    }

    /// Whether a client's header of this name is replaced by ours.
    pub(crate) fn replaces(&self, name: &HeaderName) -> bool {
        match name.as_str() {
            "x-forwarded-for" => self.client.is_some(),
            "x-forwarded-proto" => self.uri.is_none(),
            "x-forwarded-uri" => true,
            "audit-id" => self.audit_id.is_some(),
            _ => false,
        }
    }

    /// Inserts them into a header map. `path` is the path that the backend is asked for. Of the caller's identity nothing may
    /// stand there before.
    pub(crate) fn insert_into(&self, headers: &mut HeaderMap, path: &str) {
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

    /// Writes them as lines of a head, beside these headers of the client.
    pub(crate) fn write_lines(&self, out: &mut Vec<u8>, headers: &HeaderMap, path: &str) {
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
