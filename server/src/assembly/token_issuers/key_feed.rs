//! Keys of one issuer: fetched in the background at an interval, and when a token names an unknown key.
//!
//! Upstream rules: go-oidc's `remoteKeySet`. There a request with an unknown key waits for the issuer. Here the wait is limited,
//! and a request does not wait if the issuer could not be reached the last time.

use std::sync::Arc;
use std::time::Duration;

use portico_auth::oidc::JsonWebKeys;
use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_kit::tasks::TaskSet;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::metrics::KeyMetrics;
use super::provider::Provider;

/// Backoff for an issuer that could not be reached (upstream retries every 10 s).
const RETRY: BackoffPolicy =
    BackoffPolicy::new(Duration::from_millis(500), Duration::from_secs(10), 2.0, 0.2);
/// Interval at which keys are fetched again, so that withdrawn keys are removed.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// Minimum interval between fetches for tokens with an unknown key, because anyone can send such a token.
const MIN_FETCH_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time that a request waits for newer keys.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// State of an issuer.
#[derive(Clone, Default)]
struct KeyState {
    /// Result of fetching the metadata; `None` if it was not fetched yet.
    discovered: Option<Result<(), Arc<str>>>,
    keys: Option<Arc<JsonWebKeys>>,
    /// Error of the last fetch of keys; `None` if it succeeded.
    fetch_error: Option<Arc<str>>,
    /// Time at which the last fetch ended.
    fetched_at: Option<Instant>,
    /// Number of fetches that have ended.
    fetches: u64,
}

/// Feed of an issuer's keys. Cheap to clone; the task that fetches ends with the last clone.
#[derive(Clone)]
pub(super) struct KeyFeed {
    shared: SharedState,
    _fetching: Arc<DropGuard>,
}

/// State that the fetching task and its readers share.
#[derive(Clone)]
struct SharedState {
    issuer: Arc<str>,
    state: Arc<watch::Sender<KeyState>>,
    fetch_requested: Arc<Notify>,
}

impl KeyFeed {
    /// Starts to fetch, until `tasks` end or the last clone of the feed is dropped.
    pub(super) fn start(
        issuer: &str,
        discovery_url: Option<String>,
        provider: Provider,
        metrics: Option<Arc<KeyMetrics>>,
        tasks: &TaskSet,
    ) -> Self {
        let shared =
            SharedState { issuer: issuer.into(), state: Arc::default(), fetch_requested: Arc::default() };
        let (feed, unused) = (shared.clone(), CancellationToken::new());
        let fetching = Arc::new(unused.clone().drop_guard());
        let fetch = async move {
            let at = feed.discover(&provider, discovery_url.as_deref()).await;
            feed.follow(&provider, &at, metrics.as_deref()).await;
        };
        tasks.spawn_until_cancelled("token-issuer-keys", async move {
            // The result is not needed if the task ends early.
            let _ = unused.run_until_cancelled(fetch).await;
        });
        Self { shared, _fetching: fetching }
    }

    /// Returns the keys; `None` if none were fetched yet.
    pub(super) fn keys(&self) -> Option<Arc<JsonWebKeys>> {
        self.shared.state.borrow().keys.clone()
    }

    /// Returns the error of the last fetch; `None` if it succeeded.
    pub(super) fn failure(&self) -> Option<Arc<str>> {
        self.shared.state.borrow().fetch_error.clone()
    }

    /// Requests a fetch and returns its keys; `None` if a fetch is not allowed now, fails, or takes too long.
    pub(super) async fn fetch_newer(&self) -> Option<Arc<JsonWebKeys>> {
        let mut changes = self.shared.state.subscribe();
        let fetches = {
            let state = changes.borrow_and_update();
            let too_soon = state.fetched_at.is_none_or(|at| at.elapsed() < MIN_FETCH_INTERVAL);
            if too_soon || state.fetch_error.is_some() {
                return None;
            }
            state.fetches
        };
        self.shared.fetch_requested.notify_one();
        let fetched = changes.wait_for(|state| state.fetches > fetches);
        let state = tokio::time::timeout(MAX_WAIT, fetched).await.ok()?.ok()?;
        if state.fetch_error.is_some() { None } else { state.keys.clone() }
    }

    /// Returns an error while the metadata of the issuer is not available (`HealthCheck`).
    pub(super) fn health(&self) -> Result<(), String> {
        let issuer = &self.shared.issuer;
        match &self.shared.state.borrow().discovered {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => {
                Err(format!("oidc: authenticator for issuer {issuer:?} is not healthy: {error}"))
            }
            None => Err(format!(
                "oidc: authenticator for issuer {issuer:?} is not healthy: oidc: authenticator for issuer {issuer:?} is not initialized"
            )),
        }
    }

    /// Waits until the metadata of the issuer is available.
    pub(super) async fn wait_discovered(&self) {
        let mut changes = self.shared.state.subscribe();
        // `self` owns the sender, so the wait cannot fail.
        let _ = changes.wait_for(|state| matches!(state.discovered, Some(Ok(())))).await;
    }
}

impl SharedState {
    async fn discover(&self, provider: &Provider, at: Option<&str>) -> String {
        let mut retry = Backoff::new(RETRY);
        loop {
            match provider.discover(&self.issuer, at).await {
                Ok(keys) => {
                    self.state.send_modify(|state| state.discovered = Some(Ok(())));
                    return keys;
                }
                Err(error) => {
                    tracing::error!(issuer = &*self.issuer, error, "oidc authenticator: initializing plugin");
                    self.state.send_modify(|state| state.discovered = Some(Err(error.into())));
                    tokio::time::sleep(retry.next_wait()).await;
                }
            }
        }
    }

    async fn follow(&self, provider: &Provider, at: &str, metrics: Option<&KeyMetrics>) {
        let mut retry = Backoff::new(RETRY);
        loop {
            let fetched = provider.keys(at).await;
            if let Some(metrics) = metrics {
                metrics.record_fetch(fetched.as_ref().ok().map(|(_, document)| &**document));
            }
            let failed = fetched.is_err();
            self.state.send_modify(|state| {
                (state.fetched_at, state.fetches) = (Some(Instant::now()), state.fetches + 1);
                match fetched {
                    Ok((keys, _)) => (state.keys, state.fetch_error) = (Some(Arc::new(keys)), None),
                    Err(error) => {
                        tracing::error!(issuer = &*self.issuer, error, "oidc authenticator: fetching keys");
                        state.fetch_error = Some(error.into());
                    }
                }
            });
            if failed {
                tokio::time::sleep(retry.next_wait()).await;
                continue;
            }
            retry.reset();
            // A request for newer keys triggers the next fetch; so does the timeout.
            let _ = tokio::time::timeout(REFRESH_INTERVAL, self.fetch_requested.notified()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use portico_kit::tls::Roots;

    use super::super::address::IssuerAddress;
    use super::*;

    #[tokio::test]
    async fn a_feed_without_owners_stops_fetching() {
        let tasks = TaskSet::new();
        let url = "https://127.0.0.1:1".to_owned();
        let address = IssuerAddress { url, discovery_url: None, roots: Roots::Insecure, egress: None };
        let provider = Provider::new(&address, None, &tasks).unwrap();
        // No server listens there, so the fetch is retried.
        let feed = KeyFeed::start(&address.url, None, provider, None, &tasks);
        let another = feed.clone();
        drop(feed);
        assert!(tasks.running().contains_key("token-issuer-keys"));
        drop(another);
        let wait_for_end = async {
            while tasks.running().contains_key("token-issuer-keys") {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), wait_for_end).await.expect("the fetching task ends");
    }
}
