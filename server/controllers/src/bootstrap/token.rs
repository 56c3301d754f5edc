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
pub(super) enum Validity {
    Forever,
    For(Duration),
    /// Includes tokens whose expiration cannot be parsed.
    Expired,
}

/// Returns the remaining validity of a token (upstream's `GetExpiration`).
pub(super) fn validity(secret: &Object, now: Timestamp) -> Validity {
    let text = data(secret, "expiration");
    if text.is_empty() {
        return Validity::Forever;
    }
    let lifetime = time::parse(&text).and_then(|until| Duration::try_from(until.duration_since(now)).ok());
    lifetime.filter(|left| !left.is_zero()).map_or(Validity::Expired, Validity::For)
}

/// Returns the ID and the secret of a token that may sign (upstream's `validateSecretForSigning`).
pub(super) fn signing_credentials(secret: &Object, now: Timestamp) -> Option<(String, String)> {
    let token_id = secret.name().strip_prefix(PREFIX)?;
    let is_id =
        token_id.len() == ID_LENGTH && token_id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let (id, key) = (data(secret, "token-id"), data(secret, "token-secret"));
    let counts = is_id && id == token_id && !key.is_empty() && validity(secret, now) != Validity::Expired;
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
    fn a_token_signs_only_if_all_its_fields_are_valid() {
        let now = time::parse("2026-01-01T00:00:00Z").unwrap();
        assert!(signing_credentials(&token(&[]), now).is_some());
        for wrong in [
            ("token-id", "abcdeg"),
            ("token-secret", ""),
            ("usage-bootstrap-signing", "yes"),
            ("expiration", "2026-01-01T00:00:00Z"),
            ("expiration", "soon"),
        ] {
            assert_eq!(signing_credentials(&token(&[wrong]), now), None, "{wrong:?}");
        }
        let mut misnamed = token(&[]);
        misnamed.set(&["metadata", "name"], "bootstrap-token-ABCDEF");
        assert_eq!(signing_credentials(&misnamed, now), None);
    }

    #[test]
    fn the_remaining_validity_ends_at_the_expiration() {
        let now = time::parse("2026-01-01T00:00:00Z").unwrap();
        for (expiration, wanted) in [
            ("", Validity::Forever),
            ("2026-01-01T00:01:00Z", Validity::For(Duration::from_secs(60))),
            ("2026-01-01T00:00:00Z", Validity::Expired),
            ("2025-01-01T00:00:00Z", Validity::Expired),
            ("tomorrow", Validity::Expired),
        ] {
            assert_eq!(validity(&token(&[("expiration", expiration)]), now), wanted, "{expiration}");
        }
    }
}
