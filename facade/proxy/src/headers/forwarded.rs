//! Where a request came from and where it goes: `Host`, `X-Forwarded-*`, `Audit-ID`.

use std::fmt::Write;
use std::net::IpAddr;

use http::header::{HOST, HeaderMap, HeaderName, HeaderValue};

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
pub(super) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Puts our words in. `path` is the path that the backend is asked for; `host` is set apart, because it
/// depends on the target.
pub(crate) fn forward(headers: &mut HeaderMap, client: Option<IpAddr>, path: &str, audit_id: &str) {
    if let Some(client) = client {
        append_client(headers, client);
    }
    headers.insert(PROTO, HeaderValue::from_static("https"));
    if let Ok(path) = HeaderValue::from_str(path) {
        headers.insert(URI, path);
    }
    if !audit_id.is_empty()
        && let Ok(id) = HeaderValue::from_str(audit_id)
    {
        headers.insert(AUDIT_ID, id);
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
fn append_client(headers: &mut HeaderMap, client: IpAddr) {
    let mut list = String::with_capacity(48);
    for prior in headers.get_all(FOR).iter().filter_map(|value| value.to_str().ok()) {
        list.push_str(prior);
        list.push_str(", ");
    }
    // Writing into a String cannot fail.
    let _ = write!(list, "{}", client.to_canonical());
    if let Ok(value) = HeaderValue::try_from(list) {
        headers.insert(FOR, value);
    }
}
