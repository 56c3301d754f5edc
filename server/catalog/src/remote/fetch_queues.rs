//! Two work queues: for healthy services, and for suspect ones, whose last fetch failed. Suspect services never delay the
//! healthy ones.

use std::future::Future;
use std::time::Duration;

use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{ReconcileOutcome, WorkQueue, run_workers};

use super::services::ServiceKey;

/// Delay that combines further changes of the same service.
const BATCH_DELAY: Duration = Duration::from_millis(50);

/// Settings of both queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueSettings {
    /// Number of concurrent fetches of each queue.
    pub concurrency: usize,
    /// Time after which a fetch from a healthy service continues in the queue of suspect services.
    pub slow_after: Duration,
    /// Backoff after failures.
    pub retry: BackoffPolicy,
    /// Interval between successful fetches.
    pub refresh: Duration,
}

pub(super) struct FetchQueues {
    names: (&'static str, &'static str),
    settings: QueueSettings,
    healthy: WorkQueue<ServiceKey>,
    suspect: WorkQueue<ServiceKey>,
}

impl FetchQueues {
    pub fn new(healthy: &'static str, suspect: &'static str, settings: QueueSettings) -> Self {
        Self {
            names: (healthy, suspect),
            settings,
            healthy: WorkQueue::new(healthy, settings.retry),
            suspect: WorkQueue::new(suspect, settings.retry),
        }
    }

    /// Enqueues a service that is new, moved or available again at once, without waiting for suspect services.
    pub fn enqueue_now(&self, key: ServiceKey) {
        self.suspect.forget(&key);
        self.healthy.add(key);
    }

    /// Enqueues a service after a short delay, which combines related changes.
    pub fn enqueue_soon(&self, key: ServiceKey) {
        let queue = if self.suspect.retries(&key) > 0 { &self.suspect } else { &self.healthy };
        queue.add_after(key, BATCH_DELAY);
    }

    /// Starts the workers of both queues.
    pub fn run<F, Fut>(&self, tasks: &TaskSet, fetch: F)
    where
        F: Fn(ServiceKey) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        let QueueSettings { concurrency, slow_after, refresh, .. } = self.settings;
        let (first, suspect) = (fetch.clone(), self.suspect.clone());
        run_workers(tasks, self.names.0, concurrency, self.healthy.clone(), move |key: ServiceKey| {
            let (work, suspect) = (first(key.clone()), suspect.clone());
            async move {
                match tokio::time::timeout(slow_after, work).await {
                    Ok(Ok(())) => Ok::<_, String>(ReconcileOutcome::RequeueAfter(refresh)),
                    Err(_) => {
                        suspect.add(key);
                        Ok(ReconcileOutcome::Done)
                    }
                    Ok(Err(error)) => {
                        tracing::info!(
                            service = %key,
                            error,
                            "cannot fetch discovery documents of a backend, retrying"
                        );
                        suspect.add_rate_limited(key);
                        Ok(ReconcileOutcome::Done)
                    }
                }
            }
        });
        let healthy = self.healthy.clone();
        run_workers(tasks, self.names.1, concurrency, self.suspect.clone(), move |key: ServiceKey| {
            let (work, healthy) = (fetch(key.clone()), healthy.clone());
            async move {
                work.await?;
                healthy.add_after(key, refresh);
                Ok::<_, String>(ReconcileOutcome::Done)
            }
        });
    }
}
