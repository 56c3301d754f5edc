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

use portico_auth::jwt::{Claims, ExternalHeader, encode_part};
use portico_gostd::time::format_duration;
use portico_identity::{CurrentKeys, ExternalSigner, RefreshFuture, SignFuture};
use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use tokio::sync::watch;

use client::SignerClient;
use error::SignerError;
use key_feed::KeyFeed;
use metrics::SignerMetrics;

pub(crate) use key_feed::FetchSchedule;

/// Minimum token lifetime that a signer must support (`MinTokenAgeSec`), in seconds.
const MIN_TOKEN_LIFETIME: i64 = 600;

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
        let max_lifetime = client.max_token_lifetime().await.map_err(|error| error.to_string())?;
        Ok((Arc::new(Self { client, feed, keys, metrics }), max_lifetime))
    }

    /// Returns the schedule of key fetches, which is updated after every fetch.
    pub(crate) fn subscribe(&self) -> watch::Receiver<FetchSchedule> {
        self.feed.subscribe()
    }

    async fn sign_claims(&self, claims: &Claims) -> Result<String, SignerError> {
        let payload = encode_part(claims)
            .map_err(|error| SignerError::invalid_response(format!("while merging claims: {error}")))?;
        let (header, signature) =
            self.client.sign(&payload).await.map_err(|error| error.context("while signing jwt"))?;
        self.check_header(&header)
            .await
            .map_err(|error| SignerError::invalid_response(format!("while validating header: {error}")))?;
        if signature.is_empty() {
            return Err(SignerError::invalid_response("empty signature returned".to_owned()));
        }
        Ok(format!("{header}.{payload}.{signature}"))
    }

    /// Checks the header of a token (`validateJWTHeader`). Keys that are not published must not sign new tokens.
    async fn check_header(&self, header: &str) -> Result<(), String> {
        let id = ExternalHeader::parse(header).map_err(|error| error.to_string())?.key_id;
        if self.keys.load().keys.iter().all(|key| key.id() != id) {
            self.feed.fetch_newer(Duration::ZERO).await;
        }
        match self.keys.load().keys.iter().any(|key| key.id() == id && !key.is_published()) {
            true => Err(format!("key used for signing JWT (kid: {id}) is excluded from OIDC discovery docs")),
            false => Ok(()),
        }
    }
}

impl ExternalSigner for TokenSigner {
    fn sign<'a>(&'a self, claims: &'a Claims) -> SignFuture<'a> {
        Box::pin(async move {
            let signed = self.sign_claims(claims).await;
            self.metrics.record_signature(signed.as_ref().err());
            signed.map_err(|error| error.to_string())
        })
    }

    fn refresh_keys(&self) -> RefreshFuture<'_> {
        Box::pin(self.feed.fetch_newer(key_feed::MIN_FETCH_INTERVAL))
    }
}

/// Returns the maximum token lifetime in seconds, from `--service-account-max-token-expiration` and the limit of the signer.
///
/// # Errors
/// Upstream's message if the two conflict.
pub(crate) fn max_token_lifetime(flag: Option<Duration>, signer: i64) -> Result<i64, String> {
    if signer < MIN_TOKEN_LIFETIME {
        return Err(format!(
            "max token life supported by external-jwt-signer ({signer}s) is less than acceptable (min {MIN_TOKEN_LIFETIME}s)"
        ));
    }
    let Some(flag) = flag else { return Ok(signer) };
    let seconds = i64::try_from(flag.as_secs()).unwrap_or(i64::MAX);
    if seconds <= signer {
        return Ok(seconds);
    }
    let max_lifetime = Duration::from_secs(signer.unsigned_abs());
    Err(format!(
        "service-account-max-token-expiration cannot be set longer than the token expiration supported by service-account-signing-endpoint: {} > {}",
        format_duration(flag),
        format_duration(max_lifetime),
    ))
}

/// Warns if tokens of pods cannot have the required lifetime (`completeServiceAccountOptions`).
pub(crate) fn warn_short_lifetimes(max_lifetime: i64, extended: i64) {
    /// Lifetime of tokens that kubelets request for pods (`WarnOnlyBoundTokenExpirationSeconds`).
    const POD_TOKEN_LIFETIME: i64 = 3607;
    let lifetime = format_duration(Duration::from_secs(max_lifetime.unsigned_abs()));
    if max_lifetime < POD_TOKEN_LIFETIME {
        tracing::warn!(
            "service-account-extend-token-expiration is true, in order to correctly trigger safe transition logic, token lifetime supported by external-jwt-signer must be longer than {POD_TOKEN_LIFETIME} seconds (currently {lifetime})"
        );
    }
    if max_lifetime < extended {
        tracing::warn!(
            "service-account-extend-token-expiration is true, tokens validity will be caped at the smaller of {extended} seconds and maximum token lifetime supported by external-jwt-signer ({lifetime})"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signer_limits_lifetimes_and_the_flag_can_lower_them() {
        let hours = |hours: u64| Some(Duration::from_secs(hours * 3600));
        assert_eq!(max_token_lifetime(None, 600), Ok(600));
        assert_eq!(max_token_lifetime(hours(1), 7200), Ok(3600));
        assert_eq!(
            max_token_lifetime(None, 599).unwrap_err(),
            "max token life supported by external-jwt-signer (599s) is less than acceptable (min 600s)"
        );
        let longer = max_token_lifetime(hours(2), 3600).unwrap_err();
        assert!(
            longer.ends_with("supported by service-account-signing-endpoint: 2h0m0s > 1h0m0s"),
            "{longer}"
        );
    }
}
