//! Headers of a client that must not reach a backend.

use http::HeaderMap;
use http::header::{CONNECTION, COOKIE, HeaderName};

use super::identity::is_private;
use super::{forwarded, hop_by_hop};

/// Removes headers that must not reach a backend.
pub(crate) fn strip_request(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        hop_by_hop::remove_named_by_connection(headers);
    }
    let removed: Vec<HeaderName> = headers.keys().filter(|name| is_stripped(name)).cloned().collect();
    for name in removed {
        hop_by_hop::remove(headers, &name);
    }
}

/// Removes headers that identify the client, for a mirror that must not know the client.
pub(crate) fn strip_client(headers: &mut HeaderMap) {
    headers.remove(COOKIE);
    headers.remove(forwarded::FORWARDED_FOR);
}

/// Returns true if a client's header of this name must not reach a backend.
pub(super) fn is_stripped(name: &HeaderName) -> bool {
    is_private(name) || hop_by_hop::is_hop_by_hop(name) || is_lookalike(name)
}

/// Returns true if the name, with underscores read as dashes, is one that is stripped or that only the proxy or the framing may
/// set. CGI and WSGI servers read `X_Remote_User` and `X-Remote-User` as the same header.
fn is_lookalike(name: &HeaderName) -> bool {
    if !name.as_str().contains('_') {
        return false;
    }
    let Ok(dashed) = name.as_str().replace('_', "-").parse::<HeaderName>() else { return false };
    is_private(&dashed)
        || hop_by_hop::is_hop_by_hop(&dashed)
        || hop_by_hop::frames_body(&dashed)
        || dashed.as_str().starts_with("x-forwarded-")
        || dashed == forwarded::AUDIT_ID
}
