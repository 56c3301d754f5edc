//! Issuer of service account tokens: its keys, which the control service sends, and the documents that are published.
//!
//! Does not depend on the source of entries, nor on the objects that tokens are bound to.

use std::collections::BTreeSet;
use std::sync::Arc;

use portico_auth::authn::{TokenKeys, TokenTrust};
use portico_auth::jwt::{PublicKey, encode_key_set};
use portico_proto::convert::{Entry, Payload, PayloadKind, setting};
use serde::Serialize;

/// Issuer of service account tokens. Immutable; a change of entries creates a new one.
#[derive(Default)]
pub struct Issuer {
    trust: Arc<TokenTrust>,
    jwks_uri: String,
    /// Schedule of key fetches, if keys can change.
    key_fetches: Option<KeyFetches>,
}

/// Seconds for which the documents may be cached if keys do not change.
const DEFAULT_MAX_AGE: u64 = 3600;

/// Schedule of key fetches: the time of one of them, and the interval in seconds.
#[derive(Clone, Copy)]
struct KeyFetches {
    first_at: i64,
    interval: i64,
}

impl KeyFetches {
    fn parse(text: &str) -> Option<Self> {
        let (at, interval_text) = text.split_once(' ')?;
        let interval = interval_text.parse().ok().filter(|every| *every > 0)?;
        Some(Self { first_at: at.parse().ok()?, interval })
    }

    /// Seconds until the next fetch.
    fn seconds_until_next(self, now: i64) -> u64 {
        u64::try_from(self.first_at.saturating_sub(now).rem_euclid(self.interval)).unwrap_or_default()
    }
}

/// Metadata of the issuer. The order of fields is upstream's.
#[derive(Serialize)]
struct Metadata<'a> {
    issuer: &'a str,
    jwks_uri: &'a str,
    response_types_supported: [&'a str; 1],
    subject_types_supported: [&'a str; 1],
    id_token_signing_alg_values_supported: BTreeSet<&'a str>,
}

/// True if entries of this kind affect the issuer.
pub fn affects_issuer(entry: &Entry) -> bool {
    matches!(entry.kind, PayloadKind::TokenKey | PayloadKind::Setting)
}

impl Issuer {
    /// Builds the issuer from all entries; `previous` is the previous one.
    pub fn from_entries<'a>(entries: impl Iterator<Item = &'a Arc<Entry>>, previous: &Self) -> Self {
        let (mut keys, mut jwks_uri, mut key_fetches) = (TokenKeys::default(), String::new(), None);
        let (mut bootstrap, mut has_other_issuers) = (false, false);
        let lines = |text: &str| text.lines().map(str::to_owned).collect();
        for entry in entries {
            match &entry.payload {
                Some(Payload::TokenKey(token_key)) => match PublicKey::from_der(&token_key.der) {
                    Ok(key) => {
                        let key = if token_key.id.is_empty() { key } else { key.with_id(&token_key.id) };
                        keys.keys.push(key.with_unpublished(token_key.unpublished));
                    }
                    Err(error) => {
                        tracing::warn!(key = entry.key, %error, "cannot parse a token key, ignoring the key")
                    }
                },
                Some(Payload::Setting(value)) => match entry.key.as_str() {
                    setting::ISSUERS => keys.issuers = lines(value),
                    setting::AUDIENCES => keys.audiences = lines(value),
                    setting::JWKS_URI => jwks_uri.clone_from(value),
                    setting::BOOTSTRAP_TOKENS => bootstrap = value == "true",
                    setting::CONTROL_SERVICE_TOKENS => has_other_issuers = value == "true",
                    setting::TOKEN_KEY_FETCHES => key_fetches = KeyFetches::parse(value),
                    _ => {}
                },
                _ => {}
            }
        }
        let trust = TokenTrust::new(keys, bootstrap)
            .with_other_tokens(has_other_issuers)
            .with_changing_keys(key_fetches.is_some());
        // The same trust keeps cached authentication results valid.
        let is_same = trust.is_equivalent_to(&previous.trust);
        let trust = if is_same { Arc::clone(&previous.trust) } else { Arc::new(trust) };
        Self { trust, jwks_uri, key_fetches }
    }

    /// Seconds for which relying parties may cache the documents (`GetCacheAgeMaxSeconds`): they know a key before it signs.
    #[must_use]
    pub fn max_age(&self, now: i64) -> u64 {
        self.key_fetches.map_or(DEFAULT_MAX_AGE, |fetches| fetches.seconds_until_next(now))
    }

    /// Trusted keys, issuers and kinds of tokens, which decide whether a token is reviewed.
    #[must_use]
    pub fn trust(&self) -> &Arc<TokenTrust> {
        &self.trust
    }

    /// Metadata of the issuer that signs; `None` if it has no HTTPS URL. The key set is at this facade (`host:port`) unless
    /// another server publishes it.
    #[must_use]
    pub fn configuration(&self, server_address: &str) -> Option<Vec<u8>> {
        let issuer = self.issuer()?;
        let own_url = format!("https://{server_address}/openid/v1/jwks");
        let jwks_uri = if self.jwks_uri.is_empty() { &own_url } else { &self.jwks_uri };
        let metadata = Metadata {
            issuer,
            jwks_uri,
            response_types_supported: ["id_token"],
            subject_types_supported: ["public"],
            id_token_signing_alg_values_supported: self
                .trust
                .keys()
                .keys
                .iter()
                .filter(|key| key.is_published())
                .map(|key| key.algorithm().name())
                .collect(),
        };
        serde_json::to_vec(&metadata).ok()
    }

    /// The key set; `None` if there is no metadata.
    #[must_use]
    pub fn key_set(&self) -> Option<Vec<u8>> {
        self.issuer().map(|_| encode_key_set(&self.trust.keys().keys))
    }

    fn issuer(&self) -> Option<&str> {
        let first = self.trust.keys().issuers.first();
        first.map(String::as_str).filter(|issuer| issuer.starts_with("https://"))
    }
}

#[cfg(test)]
mod tests {
    use portico_auth::jwt::SigningKey;
    use portico_proto::convert::TokenKey;

    use super::*;

    fn setting(key: &str, value: &str) -> Arc<Entry> {
        let payload = Some(Payload::Setting(value.to_owned()));
        Arc::new(Entry { kind: PayloadKind::Setting, key: key.to_owned(), revision: 1, payload })
    }

    #[test]
    fn only_an_issuer_with_an_https_url_is_published() {
        let key = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
        let der = key.public_key().der().to_vec().into();
        let key = Entry {
            kind: PayloadKind::TokenKey,
            key: key.public_key().id().to_owned(),
            revision: 1,
            payload: Some(Payload::TokenKey(TokenKey { der, id: "named".to_owned(), unpublished: false })),
        };
        assert_eq!(Issuer::default().configuration("h:1"), None);
        let entries = [Arc::new(key), setting(super::setting::ISSUERS, "https://i\nhttps://j")];
        let issuer = Issuer::from_entries(entries.iter(), &Issuer::default());
        let document = String::from_utf8(issuer.configuration("h:1").unwrap()).unwrap();
        assert_eq!(
            document,
            r#"{"issuer":"https://i","jwks_uri":"https://h:1/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}"#
        );
        let unpublished = Issuer::from_entries([setting(super::setting::ISSUERS, "me")].iter(), &issuer);
        assert_eq!((unpublished.configuration("h:1"), unpublished.key_set()), (None, None));
        assert!(String::from_utf8(issuer.key_set().unwrap()).unwrap().contains(r#""kid":"named""#));
        assert_eq!(issuer.max_age(0), 3600);
    }

    #[test]
    fn documents_are_cacheable_until_keys_are_fetched_and_trust_is_kept_if_unchanged() {
        let entries = |issuer: &str, fetches: &str| {
            [setting(super::setting::ISSUERS, issuer), setting(super::setting::TOKEN_KEY_FETCHES, fetches)]
        };
        let first = Issuer::from_entries(entries("https://i", "1000 60").iter(), &Issuer::default());
        assert_eq!([990, 1000, 1001, 1060].map(|now| first.max_age(now)), [10, 0, 59, 0]);
        let later = Issuer::from_entries(entries("https://i", "2010 60").iter(), &first);
        assert!(Arc::ptr_eq(first.trust(), later.trust()));
        assert_eq!(later.max_age(2000), 10);
        assert!(!Arc::ptr_eq(
            Issuer::from_entries(entries("https://j", "2010 60").iter(), &later).trust(),
            later.trust()
        ));
    }
}
