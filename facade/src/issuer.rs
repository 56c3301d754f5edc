//! Who issues service accounts' tokens, as the control service says: keys to check them with, and what is published.
//!
//! It must not know how entries arrive, nor the objects that tokens stand for.

use std::collections::BTreeSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use portico_auth::authn::{Reviews, TokenKeys};
use portico_auth::jwt::{PublicKey, key_set};
use portico_proto::convert::{Entry, Payload, PayloadKind, setting};
use serde::Serialize;

/// See the module.
#[derive(Default)]
pub struct Issuer {
    reviews: Arc<Reviews>,
    published: ArcSwap<Published>,
    server_address: ArcSwap<String>,
}

#[derive(Default)]
struct Published {
    keys: TokenKeys,
    jwks_uri: String,
}

/// Field order is upstream's.
#[derive(Serialize)]
struct Metadata<'a> {
    issuer: &'a str,
    jwks_uri: &'a str,
    response_types_supported: [&'a str; 1],
    subject_types_supported: [&'a str; 1],
    id_token_signing_alg_values_supported: BTreeSet<&'a str>,
}

/// Whether an entry is about the issuer.
pub fn concerns(entry: &Entry) -> bool {
    matches!(entry.kind, PayloadKind::TokenKey | PayloadKind::Setting)
}

impl Issuer {
    /// Tokens that are checked with what is followed here.
    #[must_use]
    pub fn reviews(&self) -> Arc<Reviews> {
        Arc::clone(&self.reviews)
    }

    /// `host:port` of this facade, where keys are published unless somebody else does.
    pub fn set_server_address(&self, address: String) {
        self.server_address.store(Arc::new(address));
    }

    /// Takes over what all entries together say.
    pub fn follow<'a>(&self, entries: impl Iterator<Item = &'a Arc<Entry>>) {
        let (mut keys, mut jwks_uri, mut bootstrap) = (TokenKeys::default(), String::new(), false);
        let lines = |text: &str| text.lines().map(str::to_owned).collect();
        for entry in entries {
            match &entry.payload {
                Some(Payload::TokenKey(der)) => match PublicKey::from_der(der) {
                    Ok(key) => keys.keys.push(key),
                    Err(error) => tracing::warn!(key = entry.key, %error, "a token key is not used"),
                },
                Some(Payload::Setting(value)) => match entry.key.as_str() {
                    setting::ISSUERS => keys.issuers = lines(value),
                    setting::AUDIENCES => keys.audiences = lines(value),
                    setting::JWKS_URI => jwks_uri.clone_from(value),
                    setting::BOOTSTRAP_TOKENS => bootstrap = value == "true",
                    _ => {}
                },
                _ => {}
            }
        }
        self.reviews.trust(keys.clone(), bootstrap);
        self.published.store(Arc::new(Published { keys, jwks_uri }));
    }

    /// The metadata of the issuer that signs; nothing when it has no address at which relying parties could ask.
    #[must_use]
    pub fn configuration(&self) -> Option<Vec<u8>> {
        let published = self.published.load();
        let issuer = published.issuer()?;
        let own = format!("https://{}/openid/v1/jwks", self.server_address.load());
        let jwks_uri = if published.jwks_uri.is_empty() { &own } else { &published.jwks_uri };
        let metadata = Metadata {
            issuer,
            jwks_uri,
            response_types_supported: ["id_token"],
            subject_types_supported: ["public"],
            id_token_signing_alg_values_supported: published
                .keys
                .keys
                .iter()
                .map(|key| key.algorithm().name())
                .collect(),
        };
        serde_json::to_vec(&metadata).ok()
    }

    /// The key set; nothing when there is no configuration either.
    #[must_use]
    pub fn key_set(&self) -> Option<Vec<u8>> {
        let published = self.published.load();
        published.issuer().map(|_| key_set(&published.keys.keys))
    }
}

impl Published {
    fn issuer(&self) -> Option<&str> {
        self.keys.issuers.first().map(String::as_str).filter(|issuer| issuer.starts_with("https://"))
    }
}

#[cfg(test)]
mod tests {
    use portico_auth::jwt::SigningKey;

    use super::*;

    fn setting(key: &str, value: &str) -> Arc<Entry> {
        let payload = Some(Payload::Setting(value.to_owned()));
        Arc::new(Entry { kind: PayloadKind::Setting, key: key.to_owned(), revision: 1, payload })
    }

    #[test]
    fn an_issuer_with_an_https_address_is_published_and_no_other() {
        let key = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
        let der = key.public().der().to_vec().into();
        let key = Entry {
            kind: PayloadKind::TokenKey,
            key: key.public().id().to_owned(),
            revision: 1,
            payload: Some(Payload::TokenKey(der)),
        };
        let issuer = Issuer::default();
        issuer.set_server_address("h:1".to_owned());
        assert_eq!(issuer.configuration(), None);
        let entries = [Arc::new(key), setting(super::setting::ISSUERS, "https://i\nhttps://j")];
        issuer.follow(entries.iter());
        let said = String::from_utf8(issuer.configuration().unwrap()).unwrap();
        assert_eq!(
            said,
            r#"{"issuer":"https://i","jwks_uri":"https://h:1/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}"#
        );
        issuer.follow([setting(super::setting::ISSUERS, "me")].iter());
        assert_eq!((issuer.configuration(), issuer.key_set()), (None, None));
    }
}
