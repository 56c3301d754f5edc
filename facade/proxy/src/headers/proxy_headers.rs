//! The headers that the proxy itself sets on a request: the caller, its address, the path, the audit id.
//!
//! Either inserted into a header map or written as lines of an HTTP/1.1 head, with the same outcome.

use http::header::{HeaderMap, HeaderValue};

use super::forwarded::{self, AUDIT_ID, ClientAddress, FOR, PROTO, URI};
use super::identity::{Header, Identity};
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

    /// The same without who asks, and from where.
    pub(crate) fn anonymous(self) -> Self {
        Self { identity: &[], client: None, audit_id: None, uri: self.uri }
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
            if let Some(uri) = forwarded::uri(path) {
                headers.insert(URI, uri);
            }
        }
        if let Some(audit_id) = self.audit_id {
            headers.insert(AUDIT_ID, audit_id.clone());
        }
    }
}
