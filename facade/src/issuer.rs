//! Who issues service accounts' tokens, as the control service says: keys to check them with, and what is published.
//!
//! It must not know how entries arrive, nor the objects that tokens stand for.

use std::collections::BTreeSet;
use std::sync::Arc;

use portico_auth::authn::{TokenKeys, TokenTrust};
use portico_auth::jwt::{PublicKey, key_set};
use portico_proto::convert::{Entry, Payload, PayloadKind, setting};
use serde::Serialize;

/// See the module. Immutable: other entries make another one.
#[derive(Default)]
pub struct Issuer {
    trust: Arc<TokenTrust>,
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
    /// What all entries together say.
    pub fn of<'a>(entries: impl Iterator<Item = &'a Arc<Entry>>) -> Self {
        let (mut keys, mut jwks_uri) = (TokenKeys::default(), String::new());
        let (mut bootstrap, mut others) = (false, false);
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
                    setting::OTHER_TOKENS => others = value == "true",
                    _ => {}
                },
                _ => {}
            }
        }
        let trust = TokenTrust::new(keys, bootstrap).with_others(others);
        Self { trust: Arc::new(trust), jwks_uri }
    }

    /// Whose tokens are reviewed.
    #[must_use]
    pub fn trust(&self) -> &Arc<TokenTrust> {
        &self.trust
    }

    /// The metadata of the issuer that signs; nothing when it has no address at which relying parties could ask. Its keys
    /// are at this facade (`host:port`) unless somebody else publishes them.
    #[must_use]
    pub fn configuration(&self, server_address: &str) -> Option<Vec<u8>> {
        let issuer = self.issuer()?;
        let own = format!("https://{server_address}/openid/v1/jwks");
        let jwks_uri = if self.jwks_uri.is_empty() { &own } else { &self.jwks_uri };
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
                .map(|key| key.algorithm().name())
                .collect(),
        };
        serde_json::to_vec(&metadata).ok()
    }

    /// The key set; nothing when there is no configuration either.
    #[must_use]
    pub fn key_set(&self) -> Option<Vec<u8>> {
        self.issuer().map(|_| key_set(&self.trust.keys().keys))
    }

    fn issuer(&self) -> Option<&str> {
        let first = self.trust.keys().issuers.first();
        first.map(String::as_str).filter(|issuer| issuer.starts_with("https://"))
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
        assert_eq!(Issuer::default().configuration("h:1"), None);
        let entries = [Arc::new(key), setting(super::setting::ISSUERS, "https://i\nhttps://j")];
        let issuer = Issuer::of(entries.iter());
        let said = String::from_utf8(issuer.configuration("h:1").unwrap()).unwrap();
        assert_eq!(
            said,
            r#"{"issuer":"https://i","jwks_uri":"https://h:1/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}"#
        );
        let unpublished = Issuer::of([setting(super::setting::ISSUERS, "me")].iter());
        assert_eq!((unpublished.configuration("h:1"), unpublished.key_set()), (None, None));
    }
}
