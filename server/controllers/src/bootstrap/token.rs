//! Accessors of Secrets with bootstrap tokens, as in upstream's `cluster-bootstrap`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use portico_machinery::{GroupResource, Object, time};

/// Namespace of the Secrets.
pub(super) const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";
const PREFIX: &str = "bootstrap-token-";
const ID_LENGTH: usize = 6;

pub(super) fn secrets() -> GroupResource {
    GroupResource::new("", "secrets")
}

/// Returns true if the Secret is a bootstrap token.
pub(super) fn is_token(secret: &Object) -> bool {
    secret.str_at("type") == TYPE && secret.namespace() == NAMESPACE
}

/// Returns a value of the Secret, empty if it is missing.
pub(super) fn data(secret: &Object, key: &str) -> String {
    let bytes = STANDARD.decode(secret.at(&["data", key]).str()).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// Remaining validity of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Forever,
    For(Duration),
    /// Includes tokens whose expiration cannot be parsed.
    Expired,
}

/// Returns the remaining validity of a token (upstream's `GetExpiration`).
pub(super) fn left(secret: &Object, now: Timestamp) -> Left {
    let text = data(secret, "expiration");
    if text.is_empty() {
        return Left::Forever;
    }
    let left = time::parse(&text).and_then(|until| Duration::try_from(until.duration_since(now)).ok());
    left.filter(|left| !left.is_zero()).map_or(Left::Expired, Left::For)
}

/// Returns the ID and the secret of a token that may sign (upstream's `validateSecretForSigning`).
pub(super) fn signing(secret: &Object, now: Timestamp) -> Option<(String, String)> {
    let named = secret.name().strip_prefix(PREFIX)?;
    let is_id =
        named.len() == ID_LENGTH && named.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let (id, key) = (data(secret, "token-id"), data(secret, "token-secret"));
    let counts = is_id && id == named && !key.is_empty() && left(secret, now) != Left::Expired;
    (counts && data(secret, "usage-bootstrap-signing") == "true").then_some((id, key))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::bootstrap) fn token(changes: &[(&str, &str)]) -> Object {
        let mut object = Object::default();
        object.set(&["metadata", "name"], "bootstrap-token-abcdef");
        object.set(&["metadata", "namespace"], NAMESPACE);
        object.set(&["type"], TYPE);
        let whole = [
            ("token-id", "abcdef"),
            ("token-secret", "0123456789abcdef"),
            ("usage-bootstrap-signing", "true"),
        ];
        for (key, value) in whole.iter().chain(changes) {
            object.set(&["data", key], STANDARD.encode(value));
        }
        object
    }

    #[test]
    fn a_token_signs_while_everything_about_it_is_right() {
        let now = time::parse("2026-01-01T00:00:00Z").unwrap();
        assert!(signing(&token(&[]), now).is_some());
        for wrong in [
            ("token-id", "abcdeg"),
            ("token-secret", ""),
            ("usage-bootstrap-signing", "yes"),
            ("expiration", "2026-01-01T00:00:00Z"),
            ("expiration", "soon"),
        ] {
            assert_eq!(signing(&token(&[wrong]), now), None, "{wrong:?}");
        }
        let mut misnamed = token(&[]);
        misnamed.set(&["metadata", "name"], "bootstrap-token-ABCDEF");
        assert_eq!(signing(&misnamed, now), None);
    }

    #[test]
    fn the_time_that_is_left_ends_at_the_expiration() {
        let now = time::parse("2026-01-01T00:00:00Z").unwrap();
        for (expiration, wanted) in [
            ("", Left::Forever),
            ("2026-01-01T00:01:00Z", Left::For(Duration::from_secs(60))),
            ("2026-01-01T00:00:00Z", Left::Expired),
            ("2025-01-01T00:00:00Z", Left::Expired),
            ("tomorrow", Left::Expired),
        ] {
            assert_eq!(left(&token(&[("expiration", expiration)]), now), wanted, "{expiration}");
        }
    }
}
