//! The bearer token that browsers send as a WebSocket subprotocol, because they can set no header.
//!
//! Upstream rule: generic API server 7.5.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::error::AuthnError;

const PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

fn protocols(header: &str) -> impl Iterator<Item = &str> {
    header.split(',').map(str::trim)
}

/// The token among the offered subprotocols; there must be another subprotocol beside it.
pub(super) fn token(header: &str) -> Result<Option<String>, AuthnError> {
    let mut encoded = protocols(header).filter_map(|p| p.strip_prefix(PREFIX));
    let Some(first) = encoded.next() else { return Ok(None) };
    if encoded.next().is_some() {
        return Err(AuthnError::WebSocket("several tokens specified"));
    }
    let bytes = URL_SAFE_NO_PAD.decode(first).map_err(|_| AuthnError::WebSocket("not base64url"))?;
    let token = String::from_utf8(bytes).map_err(|_| AuthnError::WebSocket("not UTF-8"))?;
    if token.is_empty() {
        return Err(AuthnError::WebSocket("empty"));
    }
    if without_token(header).is_empty() {
        return Err(AuthnError::WebSocket("no other subprotocol beside it"));
    }
    Ok(Some(token))
}

/// The subprotocols that inner handlers may see: all but the token.
#[must_use]
pub fn without_token(header: &str) -> String {
    protocols(header).filter(|p| !p.is_empty() && !p.starts_with(PREFIX)).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_beside_another_protocol_only() {
        let alice = "base64url.bearer.authorization.k8s.io.YWxpY2UtdG9rZW4";
        assert_eq!(token(&format!("{alice}, v4.channel.k8s.io")), Ok(Some("alice-token".into())));
        assert_eq!(without_token(&format!("{alice}, v4.channel.k8s.io")), "v4.channel.k8s.io");
        assert_eq!(token("v4.channel.k8s.io"), Ok(None));
        for bad in [alice, &format!("{alice},{alice},v4"), &format!("{PREFIX},v4"), &format!("{PREFIX}*,v4")]
        {
            assert!(token(bad).is_err(), "{bad}");
        }
    }
}
