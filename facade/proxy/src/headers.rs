//! Headers of a request to a backend, and of its response.
//!
//! The order matters for safety: first every header that a client must not set is removed (hop-by-hop headers
//! and whatever `Connection` names, credentials, identities), then the proxy's own headers are added, so that nothing a
//! client names can remove or fake them.

mod forwarded;
mod hop;
mod identity;
mod proxy_headers;
mod response;
mod trailers;

pub use forwarded::ClientAddress;
pub(crate) use forwarded::{names_target, set_target, write_target};
pub(crate) use hop::{Upgrade, frames_body, requested_upgrade};
pub use identity::Identity;
pub(crate) use proxy_headers::ProxyHeaders;
pub(crate) use response::{clean_answer, clean_response};
pub(crate) use trailers::{announced_trailers, clean_trailers, keep_announced};

use http::HeaderMap;
use http::header::{CONNECTION, HeaderName};

use identity::is_private;
use response::is_ours;

/// Takes out of a request what must not reach a backend.
pub(crate) fn strip_request(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        hop::remove_named_by_connection(headers);
    }
    let removed: Vec<HeaderName> = headers.keys().filter(|name| is_stripped(name)).cloned().collect();
    for name in removed {
        hop::remove(headers, &name);
    }
}

/// Whether a client's header of this name never reaches a backend.
fn is_stripped(name: &HeaderName) -> bool {
    is_private(name) || hop::is_hop_by_hop(name) || imitates(name)
}

/// Whether the name is, underscores read as dashes, one that we strip or that only we or the framing may set. CGI and
/// WSGI servers read `X_Remote_User` and `X-Remote-User` as the same.
fn imitates(name: &HeaderName) -> bool {
    if !name.as_str().contains('_') {
        return false;
    }
    let Ok(dashed) = name.as_str().replace('_', "-").parse::<HeaderName>() else { return false };
    is_private(&dashed)
        || hop::is_hop_by_hop(&dashed)
        || hop::frames_body(&dashed)
        || dashed.as_str().starts_with("x-forwarded-")
        || dashed == forwarded::AUDIT_ID
}

/// A line of an HTTP/1.1 head.
pub(crate) fn write_line(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests;
