//! The keys of one issuer: fetched in the background, again when a token names one that is not there, and from time to time.
//!
//! Upstream rules: go-oidc's `remoteKeySet`. There a request that finds no key waits for the issuer; here it waits for a moment,
//! and not at all for an issuer that could not be reached the last time.

use std::sync::Arc;
use std::time::Duration;

use portico_auth::oidc::JsonWebKeys;
use portico_kit::backoff::{Backoff, Policy};
use portico_kit::tasks::TaskSet;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::metrics::KeyMetrics;
use super::provider::Provider;

/// How soon an issuer is asked again that could not be reached (upstream asks every 10 s).
const RETRY: Policy = Policy::new(Duration::from_millis(500), Duration::from_secs(10), 2.0, 0.2);
/// Keys are fetched again after this time, so that those that were withdrawn leave.
const REFRESH: Duration = Duration::from_secs(10 * 60);
/// How soon keys may be fetched again for a token that none of them has signed: anybody can make one up.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a request waits for newer keys.
const WAIT: Duration = Duration::from_secs(2);

/// What is known of an issuer.
#[derive(Clone, Default)]
struct State {
    /// Whether its metadata has come, or why not.
    discovered: Option<Result<(), Arc<str>>>,
    keys: Option<Arc<JsonWebKeys>>,
    /// Why the last fetch of keys brought none.
    failed: Option<Arc<str>>,
    /// When the last fetch ended.
    fetched: Option<Instant>,
    /// How many fetches have ended.
    fetches: u64,
}

/// See the module. Cheap to clone; what fetches ends with the last clone.
#[derive(Clone)]
pub(super) struct KeyFeed {
    shared: Shared,
    _fetching: Arc<DropGuard>,
}

/// What the one who fetches and those who read have in common.
#[derive(Clone)]
struct Shared {
    issuer: Arc<str>,
    state: Arc<watch::Sender<State>>,
    wanted: Arc<Notify>,
}

impl KeyFeed {
    /// Begins to fetch, until `tasks` end or nobody has the feed any longer.
    pub(super) fn start(
        issuer: &str,
        discovery_url: Option<String>,
        provider: Provider,
        metrics: Option<Arc<KeyMetrics>>,
        tasks: &TaskSet,
    ) -> Self {
        let shared = Shared { issuer: issuer.into(), state: Arc::default(), wanted: Arc::default() };
        let (feed, unused) = (shared.clone(), CancellationToken::new());
        let fetching = Arc::new(unused.clone().drop_guard());
        let fetch = async move {
            let at = feed.discover(&provider, discovery_url.as_deref()).await;
            feed.follow(&provider, &at, metrics.as_deref()).await;
        };
        tasks.spawn_until_cancelled("token-issuer-keys", async move {
            // Nothing is left to say when it ends early.
            let _ = unused.run_until_cancelled(fetch).await;
        });
        Self { shared, _fetching: fetching }
    }

    /// The keys; nothing as long as none have come.
    pub(super) fn keys(&self) -> Option<Arc<JsonWebKeys>> {
        self.shared.state.borrow().keys.clone()
    }

    /// Why the last fetch brought nothing, if it brought nothing.
    pub(super) fn failure(&self) -> Option<Arc<str>> {
        self.shared.state.borrow().failed.clone()
    }

    /// Keys that were fetched after this call; nothing where that may not be now, or takes too long.
    pub(super) async fn newer(&self) -> Option<Arc<JsonWebKeys>> {
        let mut changes = self.shared.state.subscribe();
        let fetches = {
            let state = changes.borrow_and_update();
            let too_soon = state.fetched.is_none_or(|at| at.elapsed() < PAUSE);
            if too_soon || state.failed.is_some() {
                return None;
            }
            state.fetches
        };
        self.shared.wanted.notify_one();
        let fetched = changes.wait_for(|state| state.fetches > fetches);
        let state = tokio::time::timeout(WAIT, fetched).await.ok()?.ok()?;
        if state.failed.is_some() { None } else { state.keys.clone() }
    }

    /// Why tokens of the issuer cannot be read yet (`HealthCheck`).
    pub(super) fn health(&self) -> Result<(), String> {
        let issuer = &self.shared.issuer;
        match &self.shared.state.borrow().discovered {
            Some(Ok(())) => Ok(()),
            Some(Err(why)) => Err(format!("oidc: authenticator for issuer {issuer:?} is not healthy: {why}")),
            None => Err(format!(
                "oidc: authenticator for issuer {issuer:?} is not healthy: oidc: authenticator for issuer {issuer:?} is not initialized"
            )),
        }
    }

    /// Waits until the issuer's metadata has come.
    pub(super) async fn discovered(&self) {
        let mut changes = self.shared.state.subscribe();
        // The sender lives as long as this does.
        let _ = changes.wait_for(|state| matches!(state.discovered, Some(Ok(())))).await;
    }
}

impl Shared {
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
                metrics.fetched(fetched.as_ref().ok().map(|(_, document)| &**document));
            }
            let failed = fetched.is_err();
            self.state.send_modify(|state| {
                (state.fetched, state.fetches) = (Some(Instant::now()), state.fetches + 1);
                match fetched {
                    Ok((keys, _)) => (state.keys, state.failed) = (Some(Arc::new(keys)), None),
                    Err(error) => {
                        tracing::error!(issuer = &*self.issuer, error, "oidc authenticator: fetching keys");
                        state.failed = Some(error.into());
                    }
                }
            });
            if failed {
                tokio::time::sleep(retry.next_wait()).await;
                continue;
            }
            retry.reset();
            // Who wants newer keys waits for the next fetch; running out of time is a reason to fetch, too.
            let _ = tokio::time::timeout(REFRESH, self.wanted.notified()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use portico_kit::tls::Roots;

    use super::super::address::IssuerAddress;
    use super::*;

    #[tokio::test]
    async fn nothing_is_fetched_for_a_feed_that_nobody_has() {
        let tasks = TaskSet::new();
        let url = "https://127.0.0.1:1".to_owned();
        let address = IssuerAddress { url, discovery_url: None, roots: Roots::Insecure, egress: None };
        let provider = Provider::new(&address, None, &tasks).unwrap();
        // Nobody listens there: it is asked again and again.
        let feed = KeyFeed::start(&address.url, None, provider, None, &tasks);
        let another = feed.clone();
        drop(feed);
        assert!(tasks.running().contains_key("token-issuer-keys"));
        drop(another);
        let ended = async {
            while tasks.running().contains_key("token-issuer-keys") {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), ended).await.expect("what fetches ends");
    }
}
