//! Keys of an external signer: fetched at the interval that the signer requests, and when a token names an
//! unknown key (`keyCache`).

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portico_identity::CurrentKeys;
use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_kit::tasks::TaskSet;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::client::SignerClient;
use super::error::SignerError;
use super::fetched_keys::FetchedKeys;
use super::metrics::SignerMetrics;

/// Backoff after a failed fetch (its maximum is `fallbackRefreshDuration`).
const RETRY: BackoffPolicy = BackoffPolicy::new(Duration::from_secs(1), Duration::from_secs(10), 2.0, 0.2);
/// Minimum interval between fetches for tokens with an unknown key, because anyone can send such a token.
pub(super) const MIN_FETCH_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time that a request waits for newer keys.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Schedule of key fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FetchSchedule {
    /// Time of one of the fetches, in Unix seconds.
    pub(crate) reference_time: i64,
    /// Interval between fetches, in seconds.
    pub(crate) interval_seconds: i64,
    /// Number of fetches that have ended, successful or not.
    ended: u64,
}

impl FetchSchedule {
    /// Returns the schedule with the next fetch at a time. Deviations of a second do not change the schedule.
    fn with_next_fetch(self, at: i64, interval_seconds: i64) -> Self {
        let difference = if self.interval_seconds == interval_seconds {
            at.saturating_sub(self.reference_time).rem_euclid(interval_seconds)
        } else {
            interval_seconds
        };
        let is_same = difference <= 1 && self.interval_seconds == interval_seconds;
        let reference_time = if is_same { self.reference_time } else { at };
        Self { reference_time, interval_seconds, ended: self.ended }
    }
}

/// Feed of an external signer's keys. Cheap to clone.
#[derive(Clone)]
pub(super) struct KeyFeed {
    client: Arc<SignerClient>,
    keys: Arc<CurrentKeys>,
    metrics: SignerMetrics,
    fetches: Arc<watch::Sender<FetchSchedule>>,
    /// Time at which the last fetch ended.
    last_fetch: Arc<watch::Sender<Option<Instant>>>,
    fetch_requested: Arc<Notify>,
}

impl KeyFeed {
    /// Fetches keys into `keys` now, and at an interval until `tasks` end.
    pub(super) async fn start(
        client: Arc<SignerClient>,
        keys: Arc<CurrentKeys>,
        metrics: SignerMetrics,
        tasks: &TaskSet,
    ) -> Result<Self, SignerError> {
        let (fetches, last_fetch, fetch_requested) = (Arc::default(), Arc::default(), Arc::default());
        let this = Self { client, keys, metrics, fetches, last_fetch, fetch_requested };
        let refresh = this.fetch().await?;
        let feed = this.clone();
        tasks.spawn_until_cancelled("token-signer-keys", async move { feed.follow(refresh).await });
        Ok(this)
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<FetchSchedule> {
        self.fetches.subscribe()
    }

    /// Fetches keys now, unless the last fetch ended less than `pause` ago. Returns true if the fetch succeeded.
    pub(super) async fn fetch_newer(&self, pause: Duration) -> bool {
        let mut fetches = self.fetches.subscribe();
        let finished_count = fetches.borrow_and_update().ended;
        if self.last_fetch.borrow().is_some_and(|at| at.elapsed() < pause) {
            return false;
        }
        self.fetch_requested.notify_one();
        let next_fetch = fetches.wait_for(|fetches| fetches.ended > finished_count);
        matches!(tokio::time::timeout(MAX_WAIT, next_fetch).await, Ok(Ok(_)))
    }

    async fn follow(&self, refresh: Duration) {
        let (mut retry, mut wait) = (Backoff::new(RETRY), refresh);
        loop {
            // A request for newer keys triggers the next fetch; so does the timeout.
            let _ = tokio::time::timeout(wait, self.fetch_requested.notified()).await;
            wait = match self.fetch().await {
                Ok(refresh) => {
                    retry.reset();
                    refresh
                }
                Err(error) => {
                    tracing::error!(
                        %error,
                        "when syncing supported public keys (a stale set of keys will be supported)"
                    );
                    retry.next_wait()
                }
            };
        }
    }

    /// Fetches keys once. Returns the time until the next fetch.
    async fn fetch(&self) -> Result<Duration, SignerError> {
        let answer = self.client.fetch_keys().await;
        let answer = answer.map_err(|e| e.context("while getting externally supported jwt signing keys"));
        let fetched =
            answer.and_then(|answer| FetchedKeys::read(&answer).map_err(SignerError::invalid_response));
        self.metrics.record_fetch(fetched.as_ref().map(|fetched| fetched.data_timestamp));
        self.last_fetch.send_replace(Some(Instant::now()));
        let refresh = fetched.map(|fetched| {
            // Equal keys are not replaced, so that comparisons by identity find no change.
            if self.keys.load().keys != fetched.keys {
                self.keys.replace(fetched.keys);
            }
            fetched.refresh
        });
        self.fetches.send_modify(|fetches| {
            if let Ok(refresh) = &refresh {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
                *fetches = fetches
                    .with_next_fetch(seconds(now).saturating_add(seconds(*refresh)), seconds(*refresh));
            }
            fetches.ended += 1;
        });
        refresh.map_err(|error| error.context("while fetching token verification keys"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fetches_on_schedule_do_not_change_the_schedule() {
        let first = FetchSchedule::default().with_next_fetch(1000, 60);
        assert_eq!((first.reference_time, first.interval_seconds), (1000, 60));
        assert_eq!(first.with_next_fetch(1060, 60).reference_time, 1000);
        assert_eq!(first.with_next_fetch(1121, 60).reference_time, 1000);
        assert_eq!(first.with_next_fetch(1122, 60).reference_time, 1122);
        assert_eq!(first.with_next_fetch(1060, 30).reference_time, 1060);
    }
}
