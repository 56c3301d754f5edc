//! Issuing and validation of service account tokens, configured by settings, key files and external signers.

use std::path::Path;
use std::sync::Arc;

use portico_auth::authn::TokenKeys;
use portico_auth::authn::token_webhook::RemoteTokenAuthenticator;
use portico_auth::jwt::{PublicKey, SigningKey};
use portico_identity::{CurrentKeys, EXTENDED_LIFETIME, Signer, TokenAuthority};
use portico_kit::atomic_file;
use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;

use super::backend_connections::egress;
use super::error::StartError;
use super::identities::TrustedIdentities;
use super::process::Process;
use super::token_issuers::{Egress, TokenIssuers};
use super::token_webhook::TokenWebhook;
use crate::settings::ServerSettings;
use crate::token_signer::{self, TokenSigner};

/// File name of the signing key that is created if no other is configured, in the certificate folder.
pub(super) const OWN_KEY: &str = "service-account.key";

/// Returns the audiences of this API.
fn audiences(settings: &ServerSettings) -> &[String] {
    let s = &settings.service_accounts;
    if s.api_audiences.is_empty() { &s.issuers } else { &s.api_audiences }
}

/// Creates the issuers of other tokens; `None` if none are configured.
pub(super) fn token_issuers(
    settings: &ServerSettings,
    process: &Process,
) -> Result<Option<TokenIssuers>, StartError> {
    let dialer = |selection| egress(settings, selection, process);
    let egress = Egress { controlplane: dialer("controlplane")?, cluster: dialer("cluster")? };
    TokenIssuers::new(settings, egress, audiences(settings), &process.metrics)
}

/// Creates the signer of tokens and the keys that validate them. Keys are read, created on the first start, or fetched.
pub(super) async fn identity(
    settings: &ServerSettings,
    identities: &TrustedIdentities,
    issuers: Option<TokenIssuers>,
    metrics: &Registry,
    tasks: &TaskSet,
) -> Result<(Arc<TokenAuthority>, Option<Arc<TokenSigner>>), StartError> {
    let s = &settings.service_accounts;
    let audiences = audiences(settings);
    let webhook = settings.token_webhook.as_ref();
    let webhook = webhook
        .map(|webhook| TokenWebhook::new(webhook, audiences, &identities.webhooks, tasks))
        .transpose()?;
    let issuers = issuers.map(|issuers| Arc::new(issuers) as Arc<dyn RemoteTokenAuthenticator>);
    let webhook = webhook.map(|webhook| Arc::new(webhook) as _);
    let TokenSigning { keys, signer, external, max_expiration, extended_life: extended_lifetime } =
        token_signing(settings, audiences, metrics, tasks).await?;
    let identity = TokenAuthority {
        keys,
        signer,
        max_expiration,
        extend_expiration: s.extend_token_expiration,
        extended_lifetime,
        lookup: s.lookup,
        bootstrap_tokens: s.bootstrap_tokens,
        static_authenticators: identities.file_tokens(),
        remote_authenticators: issuers.into_iter().chain(webhook).collect(),
    };
    Ok((Arc::new(identity), external))
}

/// Signer of tokens, with its keys and lifetimes.
struct TokenSigning {
    keys: Arc<CurrentKeys>,
    signer: Signer,
    external: Option<Arc<TokenSigner>>,
    max_expiration: Option<i64>,
    extended_life: i64,
}

async fn token_signing(
    settings: &ServerSettings,
    audiences: &[String],
    metrics: &Registry,
    tasks: &TaskSet,
) -> Result<TokenSigning, StartError> {
    let s = &settings.service_accounts;
    let trusting = |keys| {
        let (issuers, audiences) = (s.issuers.clone(), audiences.to_vec());
        Arc::new(CurrentKeys::new(TokenKeys { issuers, audiences, keys }))
    };
    let Some(endpoint) = &s.signing_endpoint else {
        let (signing_key, keys) = keys_of_files(settings)?;
        return Ok(TokenSigning {
            keys: trusting(keys),
            signer: Signer::Local(signing_key),
            external: None,
            max_expiration: s.max_token_expiration.map(|d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX)),
            extended_life: EXTENDED_LIFETIME,
        });
    };
    let keys = trusting(Vec::new());
    let started = TokenSigner::start(endpoint, Arc::clone(&keys), metrics, tasks).await;
    let (signer, max_lifetime) = started.map_err(StartError::TokenSigner)?;
    let max = token_signer::max_token_lifetime(s.max_token_expiration, max_lifetime)
        .map_err(StartError::TokenLife)?;
    if s.extend_token_expiration {
        token_signer::warn_short_lifetimes(max, EXTENDED_LIFETIME);
    }
    Ok(TokenSigning {
        keys,
        signer: Signer::External(Arc::clone(&signer) as _),
        external: Some(signer),
        max_expiration: Some(max),
        extended_life: EXTENDED_LIFETIME.min(max_lifetime),
    })
}

/// Returns the signing key, which is read or created, and all keys that validate tokens.
fn keys_of_files(settings: &ServerSettings) -> Result<(SigningKey, Vec<PublicKey>), StartError> {
    let s = &settings.service_accounts;
    let signer = match &s.signing_key_file {
        Some(path) => parse_key_file(path, read(path)?.as_slice(), SigningKey::from_pem)?,
        None => load_or_create_key(&settings.cert_dir.join(OWN_KEY))?,
    };
    let mut keys = vec![signer.public_key().clone()];
    for path in &s.key_files {
        for key in parse_key_file(path, read(path)?.as_slice(), PublicKey::all_from_pem)? {
            if keys.iter().all(|other| other.id() != key.id()) {
                keys.push(key);
            }
        }
    }
    Ok((signer, keys))
}

/// True if Portico's own key signs tokens.
pub(super) fn has_own_key(settings: &ServerSettings) -> bool {
    let s = &settings.service_accounts;
    s.signing_endpoint.is_none() && s.signing_key_file.is_none()
}

/// Creates the signing key, unless it exists.
pub(super) fn create_own_key(dir: &Path) -> Result<(), StartError> {
    load_or_create_key(&dir.join(OWN_KEY)).map(drop)
}

fn load_or_create_key(path: &Path) -> Result<SigningKey, StartError> {
    if !path.exists() {
        let pem = SigningKey::generate_pem().map_err(|source| key_error(path, source))?;
        atomic_file::write(path, pem.as_bytes(), 0o600)
            .map_err(|source| StartError::DataDir { path: path.to_owned(), source })?;
    }
    parse_key_file(path, read(path)?.as_slice(), SigningKey::from_pem)
}

fn read(path: &Path) -> Result<Vec<u8>, StartError> {
    portico_kit::config_file::read(path)
        .map_err(|source| StartError::DataDir { path: path.to_owned(), source })
}

fn parse_key_file<T>(
    path: &Path,
    pem: &[u8],
    parse: impl Fn(&[u8]) -> Result<T, portico_auth::jwt::KeyError>,
) -> Result<T, StartError> {
    parse(pem).map_err(|source| key_error(path, source))
}

fn key_error(path: &Path, source: portico_auth::jwt::KeyError) -> StartError {
    StartError::TokenKey { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_key_is_created_once_and_readable_only_by_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(OWN_KEY);
        let first = load_or_create_key(&path).unwrap();
        assert_eq!(load_or_create_key(&path).unwrap().public_key().id(), first.public_key().id());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
