//! Writes verdicts: the newest of each APIService, in batches, through the registry.
//!
//! What waits is bounded by the number of APIServices: a later verdict replaces an earlier one. A batch is written at
//! once and shares the store's commit. Verdicts that open or close a route are urgent; the rest (an APIService that
//! has never been available still is not) waits while such verdicts pour in, so that writing them does not slow down
//! those who create APIServices by the thousand, and goes out at full speed as soon as the flood ebbs.

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

/// Writes of one batch in flight at once.
const IN_FLIGHT: usize = 64;
/// Verdicts in one batch at full speed.
const BATCH: usize = 512;
/// Patient verdicts in one batch during a flood, and the pause after it.
const FLOOD_BATCH: usize = 64;
const FLOOD_PAUSE: Duration = Duration::from_millis(100);

/// What happens to APIServices' status: the registry, or a test's stand-in.
pub trait Sink: Send + Sync + 'static {
    /// The object as it is now.
    fn get(&self, name: &str) -> impl Future<Output = Result<Object, Box<Status>>> + Send;
    /// Replaces its status; the object carries the resourceVersion that it was read at.
    fn update_status(&self, object: Object) -> impl Future<Output = Result<(), Box<Status>>> + Send;
}

/// The registry as a sink.
#[derive(Clone)]
pub struct RegistrySink {
    registry: Registry,
    context: Arc<Context>,
    resource: Arc<GroupResource>,
}

impl RegistrySink {
    /// Writes as the controller.
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

/// A verdict on an object: of this uid, and no other of the same name.
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

/// A leaky bucket over patient verdicts: more than 1,000 a second for 100 ms is a flood, over 100 ms after the last.
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

/// Takes verdicts from the controllers. Cheap to clone.
#[derive(Clone, Default)]
pub struct StatusQueue {
    inner: Arc<(Mutex<Pending>, Notify)>,
}

type Batch = Vec<(Arc<str>, Wanted)>;

impl StatusQueue {
    /// The condition should be this. Replaces what waits for the same name.
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

    /// The condition is so already, or the object is gone: nothing is to be written.
    pub fn withdraw(&self, name: &str) {
        let mut pending = self.inner.0.lock();
        pending.urgent.remove(name);
        pending.patient.remove(name);
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        let pending = self.inner.0.lock();
        pending.urgent.len() + pending.patient.len()
    }

    /// Waits for a batch: urgent verdicts at once, patient ones from `patient_from` on. Answers from when the next
    /// patient ones may go.
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
                // Its end is no error: the patient ones may go now.
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

/// The writing half: one per process.
pub struct StatusWriter<S> {
    /// Where verdicts come from.
    pub queue: StatusQueue,
    /// Where they go.
    pub sink: S,
    /// Counts transitions.
    pub metrics: Metrics,
    /// Called with a name whose write failed: it is to be decided again, after a while.
    pub again: Arc<dyn Fn(Arc<str>) + Send + Sync>,
}

impl<S: Sink> StatusWriter<S> {
    /// Writes until it is dropped.
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
