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

use super::decide::{ConditionStatus, Verdict};
use super::metrics::Metrics;

const AVAILABLE: &str = "Available";

/// Maximum concurrent writes of one batch.
const IN_FLIGHT: usize = 64;
/// Maximum verdicts in one batch at full speed.
const BATCH: usize = 512;
/// Maximum deferrable verdicts in one batch during a burst, and the pause after it.
const FLOOD_BATCH: usize = 64;
const FLOOD_PAUSE: Duration = Duration::from_millis(100);

/// Access to the APIServices whose status is written: the registry, or a fake in tests.
pub trait Sink: Send + Sync + 'static {
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

impl Sink for RegistrySink {
    async fn get(&self, name: &str) -> Result<Object, Box<Status>> {
        Ok(self.registry.get(&self.resource, "", name).await?.object().clone())
    }

    async fn update_status(&self, object: Object) -> Result<(), Box<Status>> {
        self.registry.update_status(&self.context, &self.resource, object).await.map(drop)
    }
}

impl Verdict {
    fn condition(&self) -> Condition {
        Condition::new(AVAILABLE, self.status.as_str(), self.reason.as_ref(), &*self.message)
    }
}

/// Verdict about one object, identified by UID to exclude others with the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    uid: String,
    verdict: Verdict,
}

#[derive(Default)]
struct Pending {
    urgent: HashMap<Arc<str>, Wanted>,
    patient: HashMap<Arc<str>, Wanted>,
    flood: Flood,
}

/// Leaky bucket over deferrable verdicts: a burst starts at more than 1,000 verdicts a second over 100 ms and ends 100 ms after
/// the last one.
#[derive(Default)]
struct Flood {
    level: f64,
    at: Option<Instant>,
}

impl Flood {
    const PER_SECOND: f64 = 1000.0;
    const FULL: f64 = 100.0;

    fn now(&mut self, now: Instant) -> f64 {
        let passed = self.at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.at = Some(now);
        self.level = (self.level - passed.as_secs_f64() * Self::PER_SECOND).max(0.0);
        self.level
    }

    fn add(&mut self, now: Instant) {
        self.level = (self.now(now) + 1.0).min(2.0 * Self::FULL);
    }

    fn is_on(&mut self, now: Instant) -> bool {
        self.now(now) > Self::FULL
    }
}

/// Queue of verdicts from both controllers. Cheap to clone.
#[derive(Clone, Default)]
pub struct StatusQueue {
    inner: Arc<(Mutex<Pending>, Notify)>,
}

type Batch = Vec<(Arc<str>, Wanted)>;

impl StatusQueue {
    /// Adds the desired condition. Replaces a pending verdict for the same name.
    pub fn put(&self, name: &Arc<str>, uid: &str, verdict: Verdict, urgent: bool) {
        let wanted = Wanted { uid: uid.to_owned(), verdict };
        let mut pending = self.inner.0.lock();
        if urgent {
            pending.patient.remove(name);
            pending.urgent.insert(name.clone(), wanted);
        } else {
            pending.flood.add(Instant::now());
            pending.urgent.remove(name);
            pending.patient.insert(name.clone(), wanted);
        }
        drop(pending);
        self.inner.1.notify_one();
    }

    /// Removes a pending verdict: the condition is already correct, or the object is gone.
    pub fn withdraw(&self, name: &str) {
        let mut pending = self.inner.0.lock();
        pending.urgent.remove(name);
        pending.patient.remove(name);
    }

    /// Returns the number of pending verdicts.
    #[must_use]
    pub fn len(&self) -> usize {
        let pending = self.inner.0.lock();
        pending.urgent.len() + pending.patient.len()
    }

    /// Waits for a batch: urgent verdicts immediately, deferrable ones from `deferrable_from` on. Returns the earliest time of the
    /// next deferrable batch.
    async fn take(&self, patient_from: Instant) -> (Batch, Instant) {
        loop {
            let waiting = {
                let mut pending = self.inner.0.lock();
                let now = Instant::now();
                if !pending.urgent.is_empty() {
                    return (some(&mut pending.urgent, BATCH), patient_from);
                }
                let waiting = !pending.patient.is_empty();
                if waiting && now >= patient_from {
                    let (size, pause) = if pending.flood.is_on(now) {
                        (FLOOD_BATCH, FLOOD_PAUSE)
                    } else {
                        (BATCH, Duration::ZERO)
                    };
                    return (some(&mut pending.patient, size), now + pause);
                }
                waiting
            };
            let notified = self.inner.1.notified();
            if waiting {
                // A timeout is not an error: the deferrable verdicts are due.
                let _ = timeout_at(patient_from, notified).await;
            } else {
                notified.await;
            }
        }
    }
}

fn some(from: &mut HashMap<Arc<str>, Wanted>, size: usize) -> Batch {
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
    pub again: Arc<dyn Fn(Arc<str>) + Send + Sync>,
}

impl<S: Sink> StatusWriter<S> {
    /// Writes batches until the future is dropped.
    pub async fn run(self) {
        let mut patient_from = Instant::now();
        loop {
            let (batch, from) = self.queue.take(patient_from).await;
            patient_from = from;
            stream::iter(batch)
                .for_each_concurrent(IN_FLIGHT, |(name, wanted)| self.write(name, wanted))
                .await;
        }
    }

    async fn write(&self, name: Arc<str>, wanted: Wanted) {
        match self.try_write(&name, &wanted).await {
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
                (self.again)(name);
            }
        }
    }

    async fn try_write(&self, name: &str, wanted: &Wanted) -> Result<(), Box<Status>> {
        let mut object = self.sink.get(name).await?;
        if object.uid() != wanted.uid {
            return Ok(());
        }
        let from = condition::get(&object, AVAILABLE).map(|before| before.status);
        if !condition::set(&mut object, wanted.verdict.condition(), Timestamp::now()) {
            return Ok(());
        }
        self.sink.update_status(object).await?;
        if from.as_deref() != Some(wanted.verdict.status.as_str()) {
            self.transition(name, from.as_deref(), &wanted.verdict);
        }
        Ok(())
    }

    fn transition(&self, name: &str, from: Option<&str>, to: &Verdict) {
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
            self.metrics.became_unavailable(name, &to.reason);
        }
    }
}
