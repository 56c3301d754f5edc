//! Publication of trusted issuers and public keys of service account tokens to facades, with their changes.

use std::sync::Arc;

use portico_identity::Identity;
use portico_kit::tasks::TaskSet;
use portico_proto::convert::{Payload, PayloadKind, TokenKey, setting};

use super::identities::TrustedIdentities;
use crate::grpc::config::board::Board;
use crate::token_signer::{Fetches, TokenSigner};

type Change = (PayloadKind, String, Option<Payload>);

/// Publishes trusted issuers and public keys to facades. No private key is included.
pub(super) fn publish(identity: &Identity, jwks_uri: Option<&str>, board: &Board) {
    let keys = identity.keys.load();
    let on = |on: bool| if on { "true".to_owned() } else { String::new() };
    let settings = [
        (setting::ISSUERS, keys.issuers.join("\n")),
        (setting::AUDIENCES, keys.audiences.join("\n")),
        (setting::JWKS_URI, jwks_uri.unwrap_or_default().to_owned()),
        (setting::BOOTSTRAP_TOKENS, on(identity.bootstrap_tokens)),
        (setting::OTHER_TOKENS, on(!identity.remote.is_empty())),
    ];
    let settings = settings.into_iter().filter(|(_, value)| !value.is_empty());
    board.post(entries(identity).into_iter().chain(settings.map(|(name, value)| set(name, value))));
}

/// Publishes changed keys to facades and to the control service itself, until `tasks` end.
pub(super) fn follow(
    signer: &TokenSigner,
    identity: &Arc<Identity>,
    identities: &TrustedIdentities,
    board: &Board,
    tasks: &TaskSet,
) {
    let mut fetches = signer.subscribe();
    let (identity, identities, board) = (Arc::clone(identity), identities.clone(), board.clone());
    let mut sent = entries(&identity);
    board.post([schedule(*fetches.borrow_and_update())]);
    tasks.spawn_until_cancelled("token-keys", async move {
        loop {
            identities.trust_keys_of(&identity);
            let now = entries(&identity);
            let gone = sent.iter().filter(|(_, key, _)| now.iter().all(|(_, other, _)| other != key));
            let gone: Vec<Change> = gone.map(|(kind, key, _)| (*kind, key.clone(), None)).collect();
            let fetched = schedule(*fetches.borrow_and_update());
            board.post(gone.into_iter().chain(now.iter().cloned()).chain([fetched]));
            sent = now;
            if fetches.changed().await.is_err() {
                return;
            }
        }
    });
}

/// Returns an entry for each key, in order. The entries have positions as keys, because two keys may have the same ID.
fn entries(identity: &Identity) -> Vec<Change> {
    let keys = identity.keys.load();
    let entry = |(at, key): (usize, &portico_auth::jwt::PublicKey)| {
        let (der, id) = (key.der().to_vec().into(), key.id().to_owned());
        let said = TokenKey { der, id, unpublished: !key.is_published() };
        (PayloadKind::TokenKey, format!("{at:06}"), Some(Payload::TokenKey(said)))
    };
    keys.keys.iter().enumerate().map(entry).collect()
}

fn schedule(fetches: Fetches) -> Change {
    set(setting::TOKEN_KEY_FETCHES, format!("{} {}", fetches.at, fetches.every))
}

fn set(name: &str, value: String) -> Change {
    (PayloadKind::Setting, name.to_owned(), Some(Payload::Setting(value)))
}
