//! Issuing and validation of service account tokens, configured by settings, key files and external signers.

use std::path::Path;
use std::sync::Arc;

use portico_auth::authn::TokenKeys;
use portico_auth::authn::remote::RemoteTokens;
use portico_auth::jwt::{PublicKey, SigningKey};
use portico_identity::{CurrentKeys, EXTENDED_LIFE, Identity, Signer};
use portico_kit::atomic_file;
use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;

use super::backends::egress;
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
pub(super) fn issuers(
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
) -> Result<(Arc<Identity>, Option<Arc<TokenSigner>>), StartError> {
    let s = &settings.service_accounts;
    let audiences = audiences(settings);
    let webhook = settings.token_webhook.as_ref();
    let webhook =
        webhook.map(|webhook| TokenWebhook::new(webhook, audiences, &identities.calls, tasks)).transpose()?;
    let issuers = issuers.map(|issuers| Arc::new(issuers) as Arc<dyn RemoteTokens>);
    let webhook = webhook.map(|webhook| Arc::new(webhook) as _);
    let Signers { keys, signer, external, max_expiration, extended_life } =
        signers(settings, audiences, metrics, tasks).await?;
    let identity = Identity {
        keys,
        signer,
        max_expiration,
        extend_expiration: s.extend_token_expiration,
        extended_life,
        lookup: s.lookup,
        bootstrap_tokens: s.bootstrap_tokens,
        fixed: identities.fixed_tokens(),
        remote: issuers.into_iter().chain(webhook).collect(),
    };
    Ok((Arc::new(identity), external))
}

/// Signer of tokens, with its keys and lifetimes.
struct Signers {
    keys: Arc<CurrentKeys>,
    signer: Signer,
    external: Option<Arc<TokenSigner>>,
    max_expiration: Option<i64>,
    extended_life: i64,
}

async fn signers(
    settings: &ServerSettings,
    audiences: &[String],
    metrics: &Registry,
    tasks: &TaskSet,
) -> Result<Signers, StartError> {
    let s = &settings.service_accounts;
    let trusting = |keys| {
        let (issuers, audiences) = (s.issuers.clone(), audiences.to_vec());
        Arc::new(CurrentKeys::new(TokenKeys { issuers, audiences, keys }))
    };
    let Some(endpoint) = &s.signing_endpoint else {
        let (own, keys) = keys_of_files(settings)?;
        return Ok(Signers {
            keys: trusting(keys),
            signer: Signer::Own(own),
            external: None,
            max_expiration: s.max_token_expiration.map(|d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX)),
            extended_life: EXTENDED_LIFE,
        });
    };
    let keys = trusting(Vec::new());
    let started = TokenSigner::start(endpoint, Arc::clone(&keys), metrics, tasks).await;
    let (signer, longest) = started.map_err(StartError::TokenSigner)?;
    let max = token_signer::longest_life(s.max_token_expiration, longest).map_err(StartError::TokenLife)?;
    if s.extend_token_expiration {
        token_signer::warn_of_short_lives(max, EXTENDED_LIFE);
    }
    Ok(Signers {
        keys,
        signer: Signer::External(Arc::clone(&signer) as _),
        external: Some(signer),
        max_expiration: Some(max),
        extended_life: EXTENDED_LIFE.min(longest),
    })
}

/// Returns the signing key, which is read or created, and all keys that validate tokens.
fn keys_of_files(settings: &ServerSettings) -> Result<(SigningKey, Vec<PublicKey>), StartError> {
    let s = &settings.service_accounts;
    let signer = match &s.signing_key_file {
        Some(path) => with(path, read(path)?.as_slice(), SigningKey::from_pem)?,
        None => own_key(&settings.cert_dir.join(OWN_KEY))?,
    };
    let mut keys = vec![signer.public().clone()];
    for path in &s.key_files {
        for key in with(path, read(path)?.as_slice(), PublicKey::all_from_pem)? {
            if keys.iter().all(|known| known.id() != key.id()) {
                keys.push(key);
            }
        }
    }
    Ok((signer, keys))
}

/// True if Portico's own key signs tokens.
pub(super) fn has_own(settings: &ServerSettings) -> bool {
    let s = &settings.service_accounts;
    s.signing_endpoint.is_none() && s.signing_key_file.is_none()
}

/// Creates the signing key, unless it exists.
pub(super) fn make_own(dir: &Path) -> Result<(), StartError> {
    own_key(&dir.join(OWN_KEY)).map(drop)
}

fn own_key(path: &Path) -> Result<SigningKey, StartError> {
    if !path.exists() {
        let pem = SigningKey::generate_pem().map_err(|source| key_error(path, source))?;
        atomic_file::write(path, pem.as_bytes(), 0o600)
            .map_err(|source| StartError::DataDir { path: path.to_owned(), source })?;
    }
    with(path, read(path)?.as_slice(), SigningKey::from_pem)
}

fn read(path: &Path) -> Result<Vec<u8>, StartError> {
    portico_kit::config_file::read(path)
        .map_err(|source| StartError::DataDir { path: path.to_owned(), source })
}

fn with<T>(
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
    fn an_own_key_is_made_once_and_for_nobody_else_to_read() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(OWN_KEY);
        let first = own_key(&path).unwrap();
        assert_eq!(own_key(&path).unwrap().public().id(), first.public().id());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
