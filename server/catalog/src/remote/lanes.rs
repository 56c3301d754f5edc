//! Two work queues: for healthy services, and for suspect ones, whose last fetch failed. Suspect services never delay the
//! healthy ones.

use std::future::Future;
use std::time::Duration;

use portico_kit::backoff::Policy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{Reconciled, WorkQueue, run_workers};

use super::services::ServiceKey;

/// Delay that combines further changes of the same service.
const SOON: Duration = Duration::from_millis(50);

/// Settings of both queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Number of concurrent fetches of each queue.
    pub width: usize,
    /// Time after which a fetch from a healthy service continues in the queue of suspect services.
    pub patience: Duration,
    /// Backoff after failures.
    pub retry: Policy,
    /// Interval between successful fetches.
    pub refresh: Duration,
}

pub(super) struct Lanes {
    names: (&'static str, &'static str),
    shape: Shape,
    healthy: WorkQueue<ServiceKey>,
    suspect: WorkQueue<ServiceKey>,
}

impl Lanes {
    pub fn new(healthy: &'static str, suspect: &'static str, shape: Shape) -> Self {
        Self {
            names: (healthy, suspect),
            shape,
            healthy: WorkQueue::new(healthy, shape.retry),
            suspect: WorkQueue::new(suspect, shape.retry),
        }
    }

    /// Enqueues a service that is new, moved or available again at once, without waiting for suspect services.
    pub fn now(&self, key: ServiceKey) {
        self.suspect.forget(&key);
        self.healthy.add(key);
    }

    /// Enqueues a service after a short delay, which combines related changes.
    pub fn soon(&self, key: ServiceKey) {
        let lane = if self.suspect.retries(&key) > 0 { &self.suspect } else { &self.healthy };
        lane.add_after(key, SOON);
    }

    /// Starts the workers of both queues.
    pub fn run<F, Fut>(&self, tasks: &TaskSet, fetch: F)
    where
        F: Fn(ServiceKey) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        let Shape { width, patience, refresh, .. } = self.shape;
        let (first, suspect) = (fetch.clone(), self.suspect.clone());
        run_workers(tasks, self.names.0, width, self.healthy.clone(), move |key: ServiceKey| {
            let (work, suspect) = (first(key.clone()), suspect.clone());
            async move {
                match tokio::time::timeout(patience, work).await {
                    Ok(Ok(())) => Ok::<_, String>(Reconciled::Again(refresh)),
                    Err(_) => {
                        suspect.add(key);
                        Ok(Reconciled::Done)
                    }
                    Ok(Err(error)) => {
                        tracing::info!(
                            service = %key,
                            error,
                            "cannot fetch discovery documents of a backend, retrying"
                        );
                        suspect.add_rate_limited(key);
                        Ok(Reconciled::Done)
                    }
                }
            }
        });
        let healthy = self.healthy.clone();
        run_workers(tasks, self.names.1, width, self.suspect.clone(), move |key: ServiceKey| {
            let (work, healthy) = (fetch(key.clone()), healthy.clone());
            async move {
                work.await?;
                healthy.add_after(key, refresh);
                Ok::<_, String>(Reconciled::Done)
            }
        });
    }
}
