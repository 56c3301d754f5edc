//! Headers that the proxy itself sets on a request: the caller, the client's address, the path, the audit ID.
//!
//! They are either inserted into a header map or written as lines of an HTTP/1.1 head, with the same result.

use http::header::{HeaderMap, HeaderValue};

use super::forwarded::{self, AUDIT_ID, ClientAddress, FORWARDED_FOR, FORWARDED_PROTO, FORWARDED_URI};
use super::identity::{Header, Identity};
use crate::refusal::Refusal;

/// Maximum number of headers without the caller's identity: four of the proxy, and two that name the target.
const MAX_FIXED_HEADERS: usize = 6;
/// Value of `X-Forwarded-Proto`: the facade serves HTTPS only.
const HTTPS: HeaderValue = HeaderValue::from_static("https");

/// Headers that the proxy sets. Values are copied only when they are inserted or written.
#[derive(Clone, Copy)]
pub(crate) struct ProxyHeaders<'a> {
    identity: &'a [Header],
    client: Option<&'a ClientAddress>,
    audit_id: Option<&'a HeaderValue>,
    /// The path that the client requested, if the backend gets another path.
    uri: Option<&'a HeaderValue>,
}

impl<'a> ProxyHeaders<'a> {
    /// Creates the headers for this caller. An empty audit ID is not sent.
    pub(crate) fn new(
        identity: &'a Identity,
        client: Option<&'a ClientAddress>,
        audit_id: &'a HeaderValue,
    ) -> Result<Self, Refusal> {
        let audit_id = Some(audit_id).filter(|id| !id.is_empty());
        Ok(Self { identity: identity.headers()?, client, audit_id, uri: None })
    }

    /// Creates the headers for a connection to a pod, service or node: the client's address and requested path, no identity. The
    /// client's own headers for host and scheme stay, as upstream leaves them.
    pub(crate) fn for_connect(client: &'a ClientAddress, uri: &'a HeaderValue) -> Self {
        Self { identity: &[], client: Some(client), audit_id: None, uri: Some(uri) }
    }

    /// Removes the caller's identity and address.
    pub(crate) fn anonymous(self) -> Self {
        Self { identity: &[], client: None, audit_id: None, uri: self.uri }
    }

    /// Inserts the headers into a header map. `path` is the path of the request to the backend. The map must not contain identity
    /// headers before.
    pub(crate) fn insert_into(&self, headers: &mut HeaderMap, path: &str) {
        headers.reserve(self.identity.len() + MAX_FIXED_HEADERS);
        for (name, value) in self.identity {
            headers.append(name, value.clone());
        }
        if let Some(list) = self.client.and_then(|client| forwarded::forwarded_for(headers, client)) {
            headers.insert(FORWARDED_FOR, list);
        }
        if let Some(uri) = self.uri {
            headers.insert(FORWARDED_URI, uri.clone());
        } else {
            headers.insert(FORWARDED_PROTO, HTTPS);
            if let Some(uri) = forwarded::forwarded_uri(path) {
                headers.insert(FORWARDED_URI, uri);
            }
        }
        if let Some(audit_id) = self.audit_id {
            headers.insert(AUDIT_ID, audit_id.clone());
        }
    }
}
