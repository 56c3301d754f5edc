//! Publication of trusted issuers and public keys of service account tokens to facades, with their changes.

use std::sync::Arc;

use portico_identity::TokenAuthority;
use portico_kit::tasks::TaskSet;
use portico_proto::convert::{Payload, PayloadKind, TokenKey, setting};

use super::identities::TrustedIdentities;
use crate::grpc::config::board::Board;
use crate::token_signer::{FetchSchedule, TokenSigner};

type Change = (PayloadKind, String, Option<Payload>);

/// Publishes trusted issuers and public keys to facades. No private key is included.
pub(super) fn publish(identity: &TokenAuthority, jwks_uri: Option<&str>, board: &Board) {
    let keys = identity.keys.load();
    let if_enabled = |is_enabled: bool| if is_enabled { "true".to_owned() } else { String::new() };
    let settings = [
        (setting::ISSUERS, keys.issuers.join("\n")),
        (setting::AUDIENCES, keys.audiences.join("\n")),
        (setting::JWKS_URI, jwks_uri.unwrap_or_default().to_owned()),
        (setting::BOOTSTRAP_TOKENS, if_enabled(identity.bootstrap_tokens)),
        (setting::CONTROL_SERVICE_TOKENS, if_enabled(!identity.remote_authenticators.is_empty())),
    ];
    let settings = settings.into_iter().filter(|(_, value)| !value.is_empty());
    board.post(
        key_entries(identity).into_iter().chain(settings.map(|(name, value)| setting_entry(name, value))),
    );
}

/// Publishes changed keys to facades and to the control service itself, until `tasks` end.
pub(super) fn follow(
    signer: &TokenSigner,
    identity: &Arc<TokenAuthority>,
    identities: &TrustedIdentities,
    board: &Board,
    tasks: &TaskSet,
) {
    let mut fetches = signer.subscribe();
    let (identity, identities, board) = (Arc::clone(identity), identities.clone(), board.clone());
    let mut sent = key_entries(&identity);
    board.post([fetch_schedule(*fetches.borrow_and_update())]);
    tasks.spawn_until_cancelled("token-keys", async move {
        loop {
            identities.trust_keys(&identity);
            let current = key_entries(&identity);
            let removed = sent.iter().filter(|(_, key, _)| current.iter().all(|(_, other, _)| other != key));
            let removed: Vec<Change> = removed.map(|(kind, key, _)| (*kind, key.clone(), None)).collect();
            let fetched = fetch_schedule(*fetches.borrow_and_update());
            board.post(removed.into_iter().chain(current.iter().cloned()).chain([fetched]));
            sent = current;
            if fetches.changed().await.is_err() {
                return;
            }
        }
    });
}

/// Returns an entry for each key, in order. The entries have positions as keys, because two keys may have the same ID.
fn key_entries(identity: &TokenAuthority) -> Vec<Change> {
    let keys = identity.keys.load();
    let entry = |(at, key): (usize, &portico_auth::jwt::PublicKey)| {
        let (der, id) = (key.der().to_vec().into(), key.id().to_owned());
        let token_key = TokenKey { der, id, unpublished: !key.is_published() };
        (PayloadKind::TokenKey, format!("{at:06}"), Some(Payload::TokenKey(token_key)))
    };
    keys.keys.iter().enumerate().map(entry).collect()
}

fn fetch_schedule(fetches: FetchSchedule) -> Change {
    setting_entry(
        setting::TOKEN_KEY_FETCHES,
        format!("{} {}", fetches.reference_time, fetches.interval_seconds),
    )
}

fn setting_entry(name: &str, value: String) -> Change {
    (PayloadKind::Setting, name.to_owned(), Some(Payload::Setting(value)))
}
