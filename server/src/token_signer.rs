//! `--service-account-signing-endpoint`: an external signer that signs service account tokens and provides the public keys.
//!
//! Upstream rules: pkg/serviceaccount/externaljwt (`Plugin`, `keyCache`) and `completeServiceAccountOptions`. This module does
//! not depend on the meaning of tokens.

mod client;
mod error;
mod fetched_keys;
mod key_feed;
mod metrics;

use std::sync::Arc;
use std::time::Duration;

use portico_auth::jwt::{Claims, ExternalHeader, part};
use portico_gostd::time::format_duration;
use portico_identity::{CurrentKeys, ExternalSigner, Looking, Signing};
use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use tokio::sync::watch;

use client::SignerClient;
use error::SignerError;
use key_feed::KeyFeed;
use metrics::SignerMetrics;

pub(crate) use key_feed::Fetches;

/// Minimum token lifetime that a signer must support (`MinTokenAgeSec`), in seconds.
const SHORTEST_LIFE: i64 = 600;

/// External signer of tokens.
pub(crate) struct TokenSigner {
    client: Arc<SignerClient>,
    feed: KeyFeed,
    keys: Arc<CurrentKeys>,
    metrics: SignerMetrics,
}

impl TokenSigner {
    /// Connects to the signer at a socket. Also returns the maximum lifetime of its tokens in seconds. The keys of the signer are
    /// fetched into `keys` now, and at an interval until `tasks` end.
    ///
    /// # Errors
    /// The signer does not respond in time, or its response is invalid.
    pub(crate) async fn start(
        endpoint: &str,
        keys: Arc<CurrentKeys>,
        registry: &Registry,
        tasks: &TaskSet,
    ) -> Result<(Arc<Self>, i64), String> {
        let metrics = SignerMetrics::new(registry);
        let client = Arc::new(SignerClient::new(endpoint, metrics.clone()));
        let feed = KeyFeed::start(Arc::clone(&client), Arc::clone(&keys), metrics.clone(), tasks);
        let feed = feed.await.map_err(|error| {
            format!("while initially filling key cache: while performing initial cache fill: {error}")
        })?;
        let longest = client.longest_life().await.map_err(|error| error.to_string())?;
        Ok((Arc::new(Self { client, feed, keys, metrics }), longest))
    }

    /// Returns the schedule of key fetches, which is updated after every fetch.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Fetches> {
        self.feed.subscribe()
    }

    async fn signed(&self, claims: &Claims) -> Result<String, SignerError> {
        let payload =
            part(claims).map_err(|error| SignerError::own(format!("while merging claims: {error}")))?;
        let (header, signature) =
            self.client.sign(&payload).await.map_err(|error| error.context("while signing jwt"))?;
        self.check(&header)
            .await
            .map_err(|why| SignerError::own(format!("while validating header: {why}")))?;
        if signature.is_empty() {
            return Err(SignerError::own("empty signature returned".to_owned()));
        }
        Ok(format!("{header}.{payload}.{signature}"))
    }

    /// Checks the header of a token (`validateJWTHeader`). Keys that are not published must not sign new tokens.
    async fn check(&self, header: &str) -> Result<(), String> {
        let id = ExternalHeader::parse(header).map_err(|error| error.to_string())?.key_id;
        if self.keys.load().keys.iter().all(|key| key.id() != id) {
            self.feed.newer(Duration::ZERO).await;
        }
        match self.keys.load().keys.iter().any(|key| key.id() == id && !key.is_published()) {
            true => Err(format!("key used for signing JWT (kid: {id}) is excluded from OIDC discovery docs")),
            false => Ok(()),
        }
    }
}

impl ExternalSigner for TokenSigner {
    fn sign<'a>(&'a self, claims: &'a Claims) -> Signing<'a> {
        Box::pin(async move {
            let signed = self.signed(claims).await;
            self.metrics.signed(signed.as_ref().err());
            signed.map_err(|error| error.to_string())
        })
    }

    fn newer_keys(&self) -> Looking<'_> {
        Box::pin(self.feed.newer(key_feed::PAUSE))
    }
}

/// Returns the maximum token lifetime in seconds, from `--service-account-max-token-expiration` and the limit of the signer.
///
/// # Errors
/// Upstream's message if the two conflict.
pub(crate) fn longest_life(flag: Option<Duration>, signer: i64) -> Result<i64, String> {
    if signer < SHORTEST_LIFE {
        return Err(format!(
            "max token life supported by external-jwt-signer ({signer}s) is less than acceptable (min {SHORTEST_LIFE}s)"
        ));
    }
    let Some(flag) = flag else { return Ok(signer) };
    let seconds = i64::try_from(flag.as_secs()).unwrap_or(i64::MAX);
    if seconds <= signer {
        return Ok(seconds);
    }
    let longest = Duration::from_secs(signer.unsigned_abs());
    Err(format!(
        "service-account-max-token-expiration cannot be set longer than the token expiration supported by service-account-signing-endpoint: {} > {}",
        format_duration(flag),
        format_duration(longest),
    ))
}

/// Warns if tokens of pods cannot have the required lifetime (`completeServiceAccountOptions`).
pub(crate) fn warn_of_short_lives(longest: i64, extended: i64) {
    /// Lifetime of tokens that kubelets request for pods (`WarnOnlyBoundTokenExpirationSeconds`).
    const OF_PODS: i64 = 3607;
    let life = format_duration(Duration::from_secs(longest.unsigned_abs()));
    if longest < OF_PODS {
        tracing::warn!(
            "service-account-extend-token-expiration is true, in order to correctly trigger safe transition logic, token lifetime supported by external-jwt-signer must be longer than {OF_PODS} seconds (currently {life})"
        );
    }
    if longest < extended {
        tracing::warn!(
            "service-account-extend-token-expiration is true, tokens validity will be caped at the smaller of {extended} seconds and maximum token lifetime supported by external-jwt-signer ({life})"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signer_bounds_lives_and_the_flag_may_ask_for_less() {
        let hours = |hours: u64| Some(Duration::from_secs(hours * 3600));
        assert_eq!(longest_life(None, 600), Ok(600));
        assert_eq!(longest_life(hours(1), 7200), Ok(3600));
        assert_eq!(
            longest_life(None, 599).unwrap_err(),
            "max token life supported by external-jwt-signer (599s) is less than acceptable (min 600s)"
        );
        let longer = longest_life(hours(2), 3600).unwrap_err();
        assert!(
            longer.ends_with("supported by service-account-signing-endpoint: 2h0m0s > 1h0m0s"),
            "{longer}"
        );
    }
}
