//! Headers that describe the client and the target: `Host` and `X-Forwarded-*`.

use std::net::IpAddr;

use http::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use portico_machinery::connect::clean_path;

pub(super) const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
pub(super) const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
pub(super) const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
pub(super) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Address of a client as a value of `X-Forwarded-For`. Created once per connection.
#[derive(Clone, Debug)]
pub struct ClientAddress(HeaderValue);

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        let text = HeaderValue::try_from(address.to_canonical().to_string());
        // An IP address is always a valid header value.
        Self(text.unwrap_or_else(|_| HeaderValue::from_static("unknown")))
    }
}

/// Sets the target as `X-Forwarded-Host` and removes `Host`; HTTP/2 has a pseudo-header for `Host`.
pub(crate) fn set_target(headers: &mut HeaderMap, authority: &HeaderValue) {
    headers.remove(HOST);
    headers.insert(FORWARDED_HOST, authority.clone());
}

/// Returns the value of `X-Forwarded-Uri`: the path cleaned as upstream's `path.Join` does, or `None` if it is
/// not a valid header value.
pub(super) fn forwarded_uri(path: &str) -> Option<HeaderValue> {
    let is_clean = !path.contains("//") && !path.contains("/.");
    let uri = if is_clean { HeaderValue::from_str(path) } else { HeaderValue::try_from(clean_path(path)) };
    uri.ok()
}

/// Returns the value of `X-Forwarded-For`: earlier hops, then the client. `None` if it is not a valid header value.
pub(super) fn forwarded_for(
    headers: &HeaderMap,
    ClientAddress(client): &ClientAddress,
) -> Option<HeaderValue> {
    let mut list = Vec::new();
    for prior in headers.get_all(FORWARDED_FOR) {
        list.extend_from_slice(prior.as_bytes());
        list.extend_from_slice(b", ");
    }
    if list.is_empty() {
        return Some(client.clone());
    }
    list.extend_from_slice(client.as_bytes());
    HeaderValue::try_from(list).ok()
}
