//! Hop-by-hop headers, and requests that change the protocol of their connection.

use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HeaderMap, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE,
};
use portico_kit::header_text::tokens;

/// Protocols that are forwarded as raw bytes.
const UPGRADE_PROTOCOLS: [&str; 2] = ["websocket", "SPDY/3.1"];

/// Protocol change that a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Upgrade {
    /// The request is an ordinary request.
    None,
    /// Upgrade to this protocol, which is forwarded.
    To(HeaderValue),
    /// Upgrade that is not forwarded, with the reason.
    Refused(String),
}

/// Returns the requested upgrade if `Connection` has the token `upgrade`. Upstream searches for a
/// substring and forwards any protocol.
pub(crate) fn requested_upgrade(headers: &HeaderMap) -> Upgrade {
    if !headers.contains_key(CONNECTION)
        || !tokens(headers, &CONNECTION).any(|t| t.eq_ignore_ascii_case(b"upgrade"))
    {
        return Upgrade::None;
    }
    let mut values = headers.get_all(UPGRADE).iter();
    match (values.next(), values.next()) {
        (Some(value), None) if is_known(value) => Upgrade::To(value.clone()),
        (Some(value), _) => Upgrade::Refused(format!(
            "an upgrade to {:?} is not passed on: only {} are",
            String::from_utf8_lossy(value.as_bytes()),
            UPGRADE_PROTOCOLS.join(" and ")
        )),
        (None, _) => Upgrade::Refused("Connection asks for an upgrade, but no protocol is named".to_owned()),
    }
}

fn is_known(value: &HeaderValue) -> bool {
    let value = value.as_bytes().trim_ascii();
    UPGRADE_PROTOCOLS.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(value))
}

/// Returns true for hop-by-hop headers. `Trailer` is not one: the trailers themselves are forwarded. `Expect` is one: this
/// server's listener responds to it.
pub(super) fn is_hop_by_hop(name: &HeaderName) -> bool {
    *name == CONNECTION
        || *name == TRANSFER_ENCODING
        || *name == UPGRADE
        || *name == TE
        || *name == EXPECT
        || matches!(
            name.as_str(),
            "keep-alive" | "proxy-connection" | "proxy-authenticate" | "proxy-authorization"
        )
        || name.as_str() == "http2-settings"
}

/// Returns true for headers that frame a body, which each connection sets anew.
pub(super) fn frames_body(name: &HeaderName) -> bool {
    *name == CONTENT_LENGTH || *name == TRANSFER_ENCODING
}

/// Removes one header; `TE: trailers` is kept.
pub(super) fn remove(headers: &mut HeaderMap, name: &HeaderName) {
    let trailers = *name == TE && tokens(headers, &TE).any(|token| token.eq_ignore_ascii_case(b"trailers"));
    headers.remove(name);
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

pub(super) fn remove_named_by_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> =
        tokens(headers, &CONNECTION).filter_map(|token| HeaderName::from_bytes(token).ok()).collect();
    for name in named {
        remove(headers, &name);
    }
}
