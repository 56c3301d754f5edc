//! Headers of a backend's response as the client sees them.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, CONNECTION, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use portico_kit::header_text::text;

use super::forwarded::AUDIT_ID;
use super::hop_by_hop;

/// Cleans the headers as [`clean_direct_response`] does, and makes `Location` absolute.
pub(crate) fn clean_response(headers: &mut HeaderMap, authority: &HeaderValue) {
    clean_direct_response(headers);
    if let Some(location) = headers.get(LOCATION)
        && let Some(absolute) = absolute(location, authority)
    {
        headers.insert(LOCATION, absolute);
    }
}

/// Removes headers that only the facade sets (CORS, audit) and hop-by-hop headers.
pub(crate) fn clean_direct_response(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        hop_by_hop::remove_named_by_connection(headers);
    }
    let removed: Vec<HeaderName> =
        headers.keys().filter(|name| is_reserved(name) || hop_by_hop::is_hop_by_hop(name)).cloned().collect();
    for name in removed {
        headers.remove(name);
    }
}

/// Returns true for headers that a backend must not set because the facade sets them.
pub(super) fn is_reserved(name: &HeaderName) -> bool {
    *name == ACCESS_CONTROL_ALLOW_CREDENTIALS
        || *name == ACCESS_CONTROL_ALLOW_HEADERS
        || *name == ACCESS_CONTROL_ALLOW_METHODS
        || *name == ACCESS_CONTROL_ALLOW_ORIGIN
        || *name == AUDIT_ID
}

/// Returns `https://<backend>/...` for an absolute path, or for a URL of the same host; `None` for another host.
fn absolute(location: &HeaderValue, authority: &HeaderValue) -> Option<HeaderValue> {
    let (text, authority) = (text(location), text(authority));
    let path = match text.split_once("://") {
        Some((_, rest)) => {
            rest.strip_prefix(authority).filter(|rest| rest.is_empty() || rest.starts_with('/'))?
        }
        None if text.starts_with('/') && !text.starts_with("//") => text,
        None => return None,
    };
    HeaderValue::try_from(format!("https://{authority}{path}")).ok()
}
