//! Service accounts' tokens: from settings and key files to what issues and checks them, and to what facades are told.

use std::path::Path;
use std::sync::Arc;

use portico_auth::authn::TokenKeys;
use portico_auth::authn::remote::RemoteTokens;
use portico_auth::jwt::{PublicKey, SigningKey};
use portico_identity::Identity;
use portico_kit::atomic_file;
use portico_kit::tasks::TaskSet;
use portico_proto::convert::{Payload, PayloadKind, setting};

use super::backends::egress;
use super::error::StartError;
use super::identities::TrustedIdentities;
use super::process::Process;
use super::token_issuers::{Egress, TokenIssuers};
use super::token_webhook::TokenWebhook;
use crate::grpc::config::board::Board;
use crate::settings::ServerSettings;

/// The key that signs when no other is given, in the folder of certificates.
const OWN_KEY: &str = "service-account.key";

/// The audiences of this API.
fn audiences(settings: &ServerSettings) -> &[String] {
    let s = &settings.service_accounts;
    if s.api_audiences.is_empty() { &s.issuers } else { &s.api_audiences }
}

/// Who else issues tokens, where somebody may.
pub(super) fn issuers(
    settings: &ServerSettings,
    process: &Process,
) -> Result<Option<TokenIssuers>, StartError> {
    let dialer = |selection| egress(settings, selection, process);
    let egress = Egress { controlplane: dialer("controlplane")?, cluster: dialer("cluster")? };
    TokenIssuers::new(settings, egress, audiences(settings), &process.metrics)
}

/// Reads the keys, or makes one on the first start.
pub(super) fn identity(
    settings: &ServerSettings,
    identities: &TrustedIdentities,
    issuers: Option<TokenIssuers>,
    tasks: &TaskSet,
) -> Result<Identity, StartError> {
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
    let audiences = audiences(settings);
    let webhook = settings.token_webhook.as_ref();
    let webhook =
        webhook.map(|webhook| TokenWebhook::new(webhook, audiences, &identities.calls, tasks)).transpose()?;
    let issuers = issuers.map(|issuers| Arc::new(issuers) as Arc<dyn RemoteTokens>);
    let webhook = webhook.map(|webhook| Arc::new(webhook) as _);
    Ok(Identity {
        keys: Arc::new(TokenKeys { issuers: s.issuers.clone(), audiences: audiences.to_vec(), keys }),
        signer,
        max_expiration: s.max_token_expiration.map(|d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX)),
        extend_expiration: s.extend_token_expiration,
        lookup: s.lookup,
        bootstrap_tokens: s.bootstrap_tokens,
        fixed: identities.fixed_tokens(),
        remote: issuers.into_iter().chain(webhook).collect(),
    })
}

/// Tells facades whom to trust. No private key is among it.
pub(super) fn publish(identity: &Identity, jwks_uri: Option<&str>, board: &Board) {
    let keys = identity.keys.keys.iter().map(|key| {
        let der = key.der().to_vec().into();
        (PayloadKind::TokenKey, key.id().to_owned(), Some(Payload::TokenKey(der)))
    });
    let on = |on: bool| if on { "true".to_owned() } else { String::new() };
    let settings = [
        (setting::ISSUERS, identity.keys.issuers.join("\n")),
        (setting::AUDIENCES, identity.keys.audiences.join("\n")),
        (setting::JWKS_URI, jwks_uri.unwrap_or_default().to_owned()),
        (setting::BOOTSTRAP_TOKENS, on(identity.bootstrap_tokens)),
        (setting::OTHER_TOKENS, on(!identity.remote.is_empty())),
    ];
    let settings = settings
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (PayloadKind::Setting, name.to_owned(), Some(Payload::Setting(value))));
    board.post(keys.chain(settings));
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
    std::fs::read(path).map_err(|source| StartError::DataDir { path: path.to_owned(), source })
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
