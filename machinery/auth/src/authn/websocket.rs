//! Bearer token passed as a WebSocket subprotocol, which browsers use because they cannot set headers.
//!
//! Upstream rule: generic API server 7.5.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::error::AuthnError;

const PREFIX: &[u8] = b"base64url.bearer.authorization.k8s.io.";

fn protocols(header: &[u8]) -> impl Iterator<Item = &[u8]> {
    header.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// Returns the token among the offered subprotocols. Another subprotocol must be offered as well. An empty token
/// counts as absent.
pub(super) fn bearer_token(header: &[u8]) -> Result<Option<String>, AuthnError> {
    let mut encoded = protocols(header).filter_map(|protocol| protocol.strip_prefix(PREFIX));
    let Some(first) = encoded.next() else { return Ok(None) };
    if encoded.next().is_some() {
        return Err(AuthnError::WebSocket("several tokens specified"));
    }
    let bytes = URL_SAFE_NO_PAD.decode(first).map_err(|_| AuthnError::WebSocket("not base64url"))?;
    let token = String::from_utf8(bytes).map_err(|_| AuthnError::WebSocket("not UTF-8"))?;
    if token.is_empty() {
        return Ok(None);
    }
    if protocols(header).nth(1).is_none() {
        return Err(AuthnError::WebSocket("no other subprotocol"));
    }
    Ok(Some(token))
}

/// Returns the subprotocols without the token, for inner handlers.
#[must_use]
pub fn without_token(header: &[u8]) -> Vec<u8> {
    let others = protocols(header).filter(|protocol| !protocol.is_empty() && !protocol.starts_with(PREFIX));
    others.collect::<Vec<_>>().join(&b","[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_requires_another_protocol() {
        let alice = "base64url.bearer.authorization.k8s.io.YWxpY2UtdG9rZW4";
        let token = |header: &str| super::bearer_token(header.as_bytes());
        assert_eq!(token(&format!("{alice}, v4.channel.k8s.io")), Ok(Some("alice-token".into())));
        assert_eq!(token(&format!("{alice}, ä")), Ok(Some("alice-token".into())));
        assert_eq!(token(&format!("{alice},")), Ok(Some("alice-token".into())));
        assert_eq!(without_token(format!("{alice}, v4, ä").as_bytes()), "v4,ä".as_bytes());
        assert_eq!(token("v4.channel.k8s.io"), Ok(None));
        let prefix = "base64url.bearer.authorization.k8s.io.";
        assert_eq!(token(&format!("{prefix},v4")), Ok(None));
        for bad in [alice, &format!("{alice},{alice},v4"), &format!("{prefix}*,v4"), &format!("{prefix}ä,v4")]
        {
            assert!(token(bad).is_err(), "{bad}");
        }
        assert!(super::bearer_token(b"base64url.bearer.authorization.k8s.io.\xff, v4").is_err());
    }
}
