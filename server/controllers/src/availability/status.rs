//! Writes verdicts through the registry in batches: the newest verdict of each APIService.
//!
//! The number of pending verdicts is bounded by the number of APIServices: a later verdict replaces an earlier one. The
//! writes of a batch run concurrently and share commits of the store. Verdicts that open or close a route are urgent. All
//! others (an APIService that has never been available is still unavailable) are deferrable: during a burst they are
//! written slowly, so that the writes do not slow down clients that create thousands of APIServices, and at full speed
//! after the burst.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use parking_lot::Mutex;
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::condition::{self, Condition};
use portico_registry::{Context, Registry};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::decision::{AvailabilityVerdict, ConditionStatus};
use super::metrics::Metrics;

const AVAILABLE: &str = "Available";

/// Maximum concurrent writes of one batch.
const MAX_CONCURRENT_WRITES: usize = 64;
/// Maximum verdicts in one batch at full speed.
const BATCH_SIZE: usize = 512;
/// Maximum deferrable verdicts in one batch during a burst, and the pause after it.
const BURST_BATCH_SIZE: usize = 64;
const BURST_PAUSE: Duration = Duration::from_millis(100);

/// Access to the APIServices whose status is written: the registry, or a fake in tests.
pub trait StatusSink: Send + Sync + 'static {
    /// Returns the current object.
    fn get(&self, name: &str) -> impl Future<Output = Result<Object, Box<Status>>> + Send;
    /// Replaces the status; the object carries the resourceVersion at which it was read.
    fn update_status(&self, object: Object) -> impl Future<Output = Result<(), Box<Status>>> + Send;
}

/// Sink that writes to the registry.
#[derive(Clone)]
pub struct RegistrySink {
    registry: Registry,
    context: Arc<Context>,
    resource: Arc<GroupResource>,
}

impl RegistrySink {
    /// Creates a sink that writes as `system:apiserver`.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        let resource = GroupResource::new("apiregistration.k8s.io", "apiservices");
        let context = Context::system("system:apiserver");
        Self { registry, context: Arc::new(context), resource: Arc::new(resource) }
    }
}

impl StatusSink for RegistrySink {
    async fn get(&self, name: &str) -> Result<Object, Box<Status>> {
        Ok(self.registry.get(&self.resource, "", name).await?.object().clone())
    }

    async fn update_status(&self, object: Object) -> Result<(), Box<Status>> {
        self.registry.update_status(&self.context, &self.resource, object).await.map(drop)
    }
}

impl AvailabilityVerdict {
    fn condition(&self) -> Condition {
        Condition::new(AVAILABLE, self.status.as_str(), self.reason.as_ref(), &*self.message)
    }
}

/// Verdict about one object, identified by UID to exclude others with the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PendingVerdict {
    uid: String,
    verdict: AvailabilityVerdict,
}

#[derive(Default)]
struct PendingVerdicts {
    urgent: HashMap<Arc<str>, PendingVerdict>,
    deferrable: HashMap<Arc<str>, PendingVerdict>,
    burst: BurstDetector,
}

/// Leaky bucket over deferrable verdicts: a burst starts at more than 1,000 verdicts a second over 100 ms and ends 100 ms after
/// the last one.
#[derive(Default)]
struct BurstDetector {
    level: f64,
    updated_at: Option<Instant>,
}

impl BurstDetector {
    const DRAIN_PER_SECOND: f64 = 1000.0;
    const THRESHOLD: f64 = 100.0;

    fn drain(&mut self, now: Instant) -> f64 {
        let elapsed = self.updated_at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.updated_at = Some(now);
        self.level = (self.level - elapsed.as_secs_f64() * Self::DRAIN_PER_SECOND).max(0.0);
        self.level
    }

    fn add(&mut self, now: Instant) {
        self.level = (self.drain(now) + 1.0).min(2.0 * Self::THRESHOLD);
    }

    fn is_active(&mut self, now: Instant) -> bool {
        self.drain(now) > Self::THRESHOLD
    }
}

/// Queue of verdicts from both controllers. Cheap to clone.
#[derive(Clone, Default)]
pub struct StatusQueue {
    inner: Arc<(Mutex<PendingVerdicts>, Notify)>,
}

type Batch = Vec<(Arc<str>, PendingVerdict)>;

impl StatusQueue {
    /// Adds the desired condition. Replaces a pending verdict for the same name.
    pub fn put(&self, name: &Arc<str>, uid: &str, verdict: AvailabilityVerdict, urgent: bool) {
        let verdict_to_write = PendingVerdict { uid: uid.to_owned(), verdict };
        let mut pending = self.inner.0.lock();
        if urgent {
            pending.deferrable.remove(name);
            pending.urgent.insert(name.clone(), verdict_to_write);
        } else {
            pending.burst.add(Instant::now());
            pending.urgent.remove(name);
            pending.deferrable.insert(name.clone(), verdict_to_write);
        }
        drop(pending);
        self.inner.1.notify_one();
    }

    /// Removes a pending verdict: the condition is already correct, or the object is gone.
    pub fn withdraw(&self, name: &str) {
        let mut pending = self.inner.0.lock();
        pending.urgent.remove(name);
        pending.deferrable.remove(name);
    }

    /// Returns the number of pending verdicts.
    #[must_use]
    pub fn len(&self) -> usize {
        let pending = self.inner.0.lock();
        pending.urgent.len() + pending.deferrable.len()
    }

    /// Waits for a batch: urgent verdicts immediately, deferrable ones from `deferrable_from` on. Returns the earliest time of
    /// the next deferrable batch.
    async fn next_batch(&self, deferrable_from: Instant) -> (Batch, Instant) {
        loop {
            let waiting = {
                let mut pending = self.inner.0.lock();
                let now = Instant::now();
                if !pending.urgent.is_empty() {
                    return (take_some(&mut pending.urgent, BATCH_SIZE), deferrable_from);
                }
                let waiting = !pending.deferrable.is_empty();
                if waiting && now >= deferrable_from {
                    let (size, pause) = if pending.burst.is_active(now) {
                        (BURST_BATCH_SIZE, BURST_PAUSE)
                    } else {
                        (BATCH_SIZE, Duration::ZERO)
                    };
                    return (take_some(&mut pending.deferrable, size), now + pause);
                }
                waiting
            };
            let notified = self.inner.1.notified();
            if waiting {
                // A timeout is not an error: the deferrable verdicts are due.
                let _ = timeout_at(deferrable_from, notified).await;
            } else {
                notified.await;
            }
        }
    }
}

fn take_some(from: &mut HashMap<Arc<str>, PendingVerdict>, size: usize) -> Batch {
    if from.len() <= size {
        return from.drain().collect();
    }
    let names: Vec<_> = from.keys().take(size).cloned().collect();
    names.into_iter().filter_map(|name| from.remove(&name).map(|wanted| (name, wanted))).collect()
}

/// Writer of the queued verdicts; there is one per process.
pub struct StatusWriter<S> {
    pub queue: StatusQueue,
    pub sink: S,
    /// Metrics that count transitions.
    pub metrics: Metrics,
    /// Callback for names whose write failed: they are decided again after a backoff.
    pub on_failure: Arc<dyn Fn(Arc<str>) + Send + Sync>,
}

impl<S: StatusSink> StatusWriter<S> {
    /// Writes batches until the future is dropped.
    pub async fn run(self) {
        let mut deferrable_from = Instant::now();
        loop {
            let (batch, from) = self.queue.next_batch(deferrable_from).await;
            deferrable_from = from;
            stream::iter(batch)
                .for_each_concurrent(MAX_CONCURRENT_WRITES, |(name, wanted)| self.write(name, wanted))
                .await;
        }
    }

    async fn write(&self, name: Arc<str>, pending: PendingVerdict) {
        match self.try_write(&name, &pending).await {
            Ok(()) => {}
            Err(status) if status.reason() == Reason::NotFound => {}
            Err(status) => {
                if status.reason() != Reason::Conflict {
                    tracing::warn!(
                        apiservice = &*name,
                        error = %status,
                        "cannot write the Available condition, retrying"
                    );
                }
                (self.on_failure)(name);
            }
        }
    }

    async fn try_write(&self, name: &str, pending: &PendingVerdict) -> Result<(), Box<Status>> {
        let mut object = self.sink.get(name).await?;
        if object.uid() != pending.uid {
            return Ok(());
        }
        let from = condition::get(&object, AVAILABLE).map(|before| before.status);
        if !condition::set(&mut object, pending.verdict.condition(), Timestamp::now()) {
            return Ok(());
        }
        self.sink.update_status(object).await?;
        if from.as_deref() != Some(pending.verdict.status.as_str()) {
            self.report_transition(name, from.as_deref(), &pending.verdict);
        }
        Ok(())
    }

    fn report_transition(&self, name: &str, from: Option<&str>, to: &AvailabilityVerdict) {
        let (status, reason) = (to.status.as_str(), &*to.reason);
        tracing::info!(
            apiservice = name,
            from,
            to = status,
            reason,
            detail = to.message,
            "availability changed"
        );
        if from == Some("True") && to.status != ConditionStatus::True {
            self.metrics.count_unavailable(name, &to.reason);
        }
    }
}
