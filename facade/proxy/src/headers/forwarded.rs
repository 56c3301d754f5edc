//! Where a request came from and where it goes: `Host`, `X-Forwarded-*`, `Audit-ID`.

use std::net::IpAddr;

use http::header::{HOST, HeaderMap, HeaderName, HeaderValue};

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
pub(super) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// A client's address as `X-Forwarded-For` says it. Made once for as many requests as it sends.
#[derive(Clone, Debug)]
pub struct ClientAddress(HeaderValue);

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        let text = HeaderValue::try_from(address.to_canonical().to_string());
        // An address in a header is always valid.
        Self(text.unwrap_or_else(|_| HeaderValue::from_static("unknown")))
    }
}

/// Puts our words in. `path` is the path that the backend is asked for; `host` is set apart, because it
/// depends on the target.
pub(crate) fn forward(
    headers: &mut HeaderMap,
    client: Option<&ClientAddress>,
    path: &str,
    audit_id: &HeaderValue,
) {
    if let Some(client) = client {
        append_client(headers, client);
    }
    headers.insert(PROTO, HeaderValue::from_static("https"));
    if let Ok(path) = HeaderValue::from_str(path) {
        headers.insert(URI, path);
    }
    if !audit_id.is_empty() {
        headers.insert(AUDIT_ID, audit_id.clone());
    }
}

/// Names the target as `Host` (unless the protocol says it otherwise) and `X-Forwarded-Host`.
pub(crate) fn set_target(headers: &mut HeaderMap, authority: &HeaderValue, host: bool) {
    if host {
        headers.insert(HOST, authority.clone());
    } else {
        headers.remove(HOST);
    }
    headers.insert(FORWARDED_HOST, authority.clone());
}

/// One header, the client last.
fn append_client(headers: &mut HeaderMap, ClientAddress(client): &ClientAddress) {
    let mut list = Vec::new();
    for prior in headers.get_all(FOR).iter().filter(|value| value.to_str().is_ok()) {
        list.extend_from_slice(prior.as_bytes());
        list.extend_from_slice(b", ");
    }
    if list.is_empty() {
        headers.insert(FOR, client.clone());
        return;
    }
    list.extend_from_slice(client.as_bytes());
    if let Ok(value) = HeaderValue::try_from(list) {
        headers.insert(FOR, value);
    }
}
