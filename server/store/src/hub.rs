//! Distributes committed events to subscriptions and keeps the recent events. Never waits for a reader.
//!
//! Order of publication: ring, revision, (the writer answers its callers), fan-out. A subscription registers before it
//! copies the ring, so it receives an event from the ring, from the fan-out, or from both; it skips events that it has seen.

mod subscribers;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use self::subscribers::{ScopeSubscribers, Subscriber, remove};
use crate::error::StoreError;
use crate::event::Event;
use crate::key::Resource;
use crate::settings::Settings;
use crate::subscription::queue_load::QueueLoad;
use crate::subscription::selection::{Batch, Selection};
use crate::subscription::watch_error::WatchError;

/// Batches of events that wait for one watch of the store.
///
/// Limit (Storage and watches): the watch ends and the client resumes.
const SUBSCRIPTION_BATCHES: usize = 4_096;

/// Distributor of committed events: ring of recent events and the running subscriptions.
pub(crate) struct Hub {
    ring: Mutex<Ring>,
    subscribers: Mutex<Subscribers>,
    revision: watch::Sender<i64>,
    fan_out_revision: AtomicI64,
    compacted: AtomicI64,
    /// Compaction point of watches whose events are all in memory. Deletions without history do not advance it, nor do
    /// compactions by other clients of etcd.
    watch_compacted: AtomicI64,
    next_id: AtomicU64,
    limits: Limits,
    /// Metric: number of running subscriptions.
    running: Gauge,
}

struct Limits {
    ring_events: usize,
    ring_bytes: usize,
    subscription_events: usize,
    subscription_bytes: usize,
}

struct Ring {
    batches: VecDeque<(Batch, usize)>,
    events: usize,
    bytes: usize,
    /// Every event with a greater revision is in the ring.
    floor: i64,
}

/// Registration of a new subscription with the hub.
pub(crate) struct Registration {
    pub(crate) id: u64,
    pub(crate) receiver: mpsc::Receiver<Batch>,
    pub(crate) load: Arc<QueueLoad>,
    /// Every event with a greater revision is in `recent` or will be queued.
    pub(crate) floor: i64,
    /// Recent batches that contain a revision greater than the start of the subscription.
    pub(crate) recent: Vec<Batch>,
}

#[derive(Default)]
struct Subscribers {
    scopes: HashMap<Resource, ScopeSubscribers>,
    followers: Vec<Subscriber>,
    closed: bool,
}

impl Hub {
    pub(crate) fn new(revision: i64, compacted: i64, settings: &Settings, running: Gauge) -> Self {
        Self {
            ring: Mutex::new(Ring { batches: VecDeque::new(), events: 0, bytes: 0, floor: revision }),
            subscribers: Mutex::default(),
            revision: watch::Sender::new(revision),
            fan_out_revision: AtomicI64::new(revision),
            compacted: AtomicI64::new(compacted),
            watch_compacted: AtomicI64::new(compacted),
            next_id: AtomicU64::new(0),
            limits: Limits {
                ring_events: settings.ring_events,
                ring_bytes: settings.ring_bytes,
                subscription_events: settings.subscription_events,
                subscription_bytes: settings.subscription_bytes,
            },
            running,
        }
    }

    pub(crate) fn revision(&self) -> i64 {
        *self.revision.borrow()
    }

    pub(crate) fn revisions(&self) -> watch::Receiver<i64> {
        self.revision.subscribe()
    }

    /// Resolves when all commits up to a revision are visible, or with an error once the store has closed.
    pub(crate) fn wait_until_visible(
        &self,
        revision: i64,
        closed: CancellationToken,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + use<> {
        let mut revisions = self.revisions();
        async move {
            let result = closed.run_until_cancelled(revisions.wait_for(|current| *current >= revision)).await;
            result.and_then(Result::ok).map(|_| ()).ok_or(StoreError::Closed)
        }
    }

    /// Returns the revision up to which every event is in the queues of all its subscriptions.
    pub(crate) fn fan_out_revision(&self) -> i64 {
        self.fan_out_revision.load(Ordering::Acquire)
    }

    pub(crate) fn compacted(&self) -> i64 {
        self.compacted.load(Ordering::Acquire)
    }

    /// Rejects reads at revisions that do not exist yet or are compacted.
    pub(crate) fn check_readable(&self, revision: i64) -> Result<(), StoreError> {
        let (oldest, current) = (self.compacted(), self.revision());
        match revision {
            _ if revision < oldest => Err(StoreError::Compacted { oldest }),
            _ if revision > current => Err(StoreError::Future { current }),
            _ => Ok(()),
        }
    }

    /// Rejects the result of a read if states of its revision may have been compacted since.
    pub(crate) fn check_not_compacted(&self, revision: i64) -> Result<(), StoreError> {
        let oldest = self.compacted();
        if revision < oldest { Err(StoreError::Compacted { oldest }) } else { Ok(()) }
    }

    /// Advances the compaction point. Must be called before the rows are deleted.
    pub(crate) fn set_compacted(&self, revision: i64) {
        self.watch_compacted.fetch_max(revision, Ordering::AcqRel);
        self.compacted.fetch_max(revision, Ordering::AcqRel);
    }

    /// Advances the compaction point of reads only: watches whose events are all in memory continue. Used for groups that
    /// delete rows and whose events reach this hub, and for compactions by other processes.
    pub(crate) fn compact_reads(&self, revision: i64) {
        self.compacted.fetch_max(revision, Ordering::AcqRel);
    }

    /// Returns the oldest revision from which a watch can start that has all events after `floor` in memory.
    pub(crate) fn oldest_watchable(&self, from: i64, floor: i64) -> i64 {
        if from < floor { self.compacted() } else { self.watch_compacted.load(Ordering::Acquire) }
    }

    /// Moves the compaction point back: the rows whose deletion was announced still exist.
    pub(crate) fn undo_compacted(&self, revision: i64) {
        self.compacted.store(revision, Ordering::Release);
        // Wakes readers that wait for the revision of that deletion.
        self.revision.send_modify(|_| ());
    }

    /// Waits until the current revision can be read. The revision of a deletion without history is compacted
    /// before it is visible.
    pub(crate) async fn wait_until_readable(&self) {
        let mut revisions = self.revisions();
        // `self` owns the sender, so the channel stays open.
        let _ = revisions.wait_for(|revision| *revision >= self.compacted()).await;
    }

    /// Makes a group visible after the caches have applied it. `events` are in revision order; `revision` is the
    /// last of the group.
    pub(crate) fn publish(&self, events: &Batch, revision: i64) {
        {
            let mut ring = self.ring.lock();
            let weight = events.iter().map(|event| event.weight()).sum();
            ring.events += events.len();
            ring.bytes += weight;
            ring.batches.push_back((events.clone(), weight));
            while ring.events > self.limits.ring_events || ring.bytes > self.limits.ring_bytes {
                let Some((oldest, weight)) = ring.batches.pop_front() else { break };
                ring.events -= oldest.len();
                ring.bytes -= weight;
                ring.floor = oldest.last().map_or(ring.floor, |event| event.revision());
            }
        }
        self.revision.send_replace(revision);
    }

    /// Advances the revision without an event.
    pub(crate) fn advance(&self, revision: i64) {
        self.revision.send_replace(revision);
        self.fan_out_revision.store(revision, Ordering::Release);
    }

    /// Puts a published group into the queues of its subscriptions. Ends subscriptions whose queue is full.
    pub(crate) fn fan_out(&self, events: &Batch, revision: i64) {
        let mut subscribers = self.subscribers.lock();
        if !subscribers.scopes.is_empty() {
            for (resource, batch) in by_resource(events) {
                let Some(scoped) = subscribers.scopes.get_mut(&resource) else { continue };
                scoped.offer(&batch, |subscriber| self.enqueue(subscriber, &batch));
                if scoped.is_empty() {
                    subscribers.scopes.remove(&resource);
                }
            }
        }
        subscribers.followers.retain(|subscriber| self.enqueue(subscriber, events));
        self.fan_out_revision.store(revision, Ordering::Release);
    }

    /// Puts the matching events into the queue of a subscriber. Returns false if the subscription was cut or dropped.
    fn enqueue(&self, subscriber: &Subscriber, batch: &Batch) -> bool {
        let Some(batch) = select(subscriber, batch) else { return true };
        let load = &subscriber.load;
        let bytes = batch.iter().map(|event| event.weight()).sum();
        let events = load.events.fetch_add(batch.len(), Ordering::Relaxed) + batch.len();
        let queued_bytes = load.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // An empty queue always accepts one batch, of any size.
        let is_full = events > self.limits.subscription_events.max(batch.len())
            || queued_bytes > self.limits.subscription_bytes.max(bytes);
        if is_full || subscriber.sender.try_send(batch).is_err() {
            load.lagged.store(true, Ordering::Release);
            self.running.dec();
            return false;
        }
        true
    }

    /// Registers a subscription that has seen everything up to `from`. [`Hub::unsubscribe`] removes it.
    pub(crate) fn join(&self, selection: Selection, from: i64) -> Result<Registration, WatchError> {
        let (sender, receiver) = mpsc::channel(SUBSCRIPTION_BATCHES);
        let load = Arc::new(QueueLoad::default());
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.register(Subscriber { id, selection, sender, load: load.clone() })?;
        let (floor, recent) = self.recent(from);
        Ok(Registration { id, receiver, load, floor, recent })
    }

    fn register(&self, subscriber: Subscriber) -> Result<(), WatchError> {
        let mut subscribers = self.subscribers.lock();
        if subscribers.closed {
            return Err(WatchError::Closed);
        }
        match subscriber.selection.clone() {
            Selection::Scope(scope) => {
                subscribers.scopes.entry(scope.resource.clone()).or_default().insert(&scope, subscriber);
            }
            Selection::Filter(_) => subscribers.followers.push(subscriber),
        }
        self.running.inc();
        Ok(())
    }

    /// Returns the floor of the ring, and its batches that contain a revision greater than `from`.
    fn recent(&self, from: i64) -> (i64, Vec<Batch>) {
        let ring = self.ring.lock();
        let start = ring
            .batches
            .partition_point(|(batch, _)| batch.last().is_none_or(|event| event.revision() <= from));
        (ring.floor, ring.batches.range(start..).map(|(batch, _)| batch.clone()).collect())
    }

    /// Removes a subscription. Does nothing if the subscription was already cut.
    pub(crate) fn unsubscribe(&self, id: u64, selection: &Selection) {
        let mut subscribers = self.subscribers.lock();
        let removed = match selection {
            Selection::Scope(scope) => {
                let Some(scoped) = subscribers.scopes.get_mut(&scope.resource) else { return };
                let removed = scoped.remove(scope, id);
                if scoped.is_empty() {
                    subscribers.scopes.remove(&scope.resource);
                }
                removed
            }
            Selection::Filter(_) => remove(&mut subscribers.followers, id),
        };
        if removed {
            self.running.dec();
        }
    }

    /// Ends the subscriptions of a resource because a state that they have passed became readable again. Clients list and resume.
    pub(crate) fn expire(&self, resource: &Resource) {
        let expire = |subscriber: &Subscriber| {
            subscriber.load.expired.store(true, Ordering::Release);
            self.running.dec();
        };
        let mut subscribers = self.subscribers.lock();
        if let Some(scoped) = subscribers.scopes.remove(resource) {
            scoped.iter().for_each(expire);
        }
        subscribers.followers.retain(|subscriber| {
            let is_unselected = !subscriber.selection.selects_resource(resource);
            if !is_unselected {
                expire(subscriber);
            }
            is_unselected
        });
    }

    /// Ends all subscriptions. They still deliver their queued events.
    pub(crate) fn close(&self) {
        let mut subscribers = self.subscribers.lock();
        subscribers.closed = true;
        subscribers.scopes.clear();
        subscribers.followers.clear();
        self.running.set(0);
    }
}

/// Returns the events of a batch that a subscription selects; `None` if there are none. A fully selected batch is shared.
fn select(subscriber: &Subscriber, batch: &Batch) -> Option<Batch> {
    let is_selected = |event: &&Arc<Event>| subscriber.selection.selects(event);
    match batch.iter().filter(is_selected).count() {
        0 => None,
        count if count == batch.len() => Some(batch.clone()),
        _ => Some(batch.iter().filter(is_selected).cloned().collect()),
    }
}

/// Splits a group by resource. A group of a single resource is shared.
fn by_resource(events: &Batch) -> Vec<(Resource, Batch)> {
    let resource_of = |event: &Arc<Event>| event.record.key.resource().clone();
    let Some(first) = events.first().map(resource_of) else { return Vec::new() };
    if events.iter().all(|event| *event.record.key.resource() == first) {
        return vec![(first, events.clone())];
    }
    let mut split: HashMap<Resource, Vec<Arc<Event>>> = HashMap::new();
    for event in events.iter() {
        split.entry(resource_of(event)).or_default().push(event.clone());
    }
    split.into_iter().map(|(resource, events)| (resource, events.into())).collect()
}
