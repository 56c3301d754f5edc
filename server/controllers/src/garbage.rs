//! Garbage collection (`garbage-collector-controller`): dependents of a deleted owner are orphaned, or deleted before or after
//! the owner.
//!
//! Reads the log and the store's owner index instead of building a graph. Changes missed before a start or by slow reading are
//! found in the index. Owners and dependents on other servers are looked up with requests (`foreign_objects`).

mod actor;
pub mod decision;
pub mod foreign_objects;
mod waiting_owners;

use std::sync::Arc;

use futures::future::BoxFuture;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::Status;
use portico_registry::{LogEntry, ObjectRef, Registry, StoredObject};

use crate::log::Listener;
use actor::Actor;
use decision::{FOREGROUND, ORPHAN};
use foreign_objects::{ForeignDependents, ForeignObjectClient, ForeignOwners};
use waiting_owners::WaitingOwners;

/// Number of objects checked concurrently.
const WORKERS: usize = 4;

/// Events have no dependents and are numerous.
const EVENTS: &str = "events";

/// Item of the work queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum GarbageItem {
    /// UID of an owner that is, or may be, deleted.
    DeletedOwner(String),
    /// An object with owners.
    Check(ObjectRef),
    /// An object that is being deleted and waits for its dependents.
    Finish(ObjectRef),
}

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct GarbageCollector {
    queue: WorkQueue<GarbageItem>,
    waiting: WaitingOwners,
    foreign_owners: ForeignOwners,
    foreign_dependents: ForeignDependents,
}

impl GarbageCollector {
    /// Creates the controller. `client` accesses API servers with objects that this server does not store.
    #[must_use]
    pub fn new(client: Arc<dyn ForeignObjectClient>, metrics: &QueueMetrics) -> Self {
        Self {
            queue: WorkQueue::with_metrics("garbage_collector", BackoffPolicy::CONTROLLER, metrics),
            waiting: WaitingOwners::default(),
            foreign_owners: ForeignOwners::new(Arc::clone(&client), metrics),
            foreign_dependents: ForeignDependents::new(client, metrics),
        }
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, actor) = (self.clone(), Actor::new(registry.clone(), self.foreign_owners.clone()));
        let queue = self.queue.clone();
        self.foreign_owners
            .run_workers(registry, tasks, move |uid| queue.add(GarbageItem::DeletedOwner(uid)));
        self.foreign_dependents.run_worker(&actor, tasks);
        run_workers(tasks, "garbage-collector", WORKERS, self.queue.clone(), move |item| {
            let (worker, actor) = (worker.clone(), actor.clone());
            async move { worker.reconcile(&actor, item).await }
        });
    }

    /// Enqueues those of these owners that wait for the object of a change.
    fn wake_waiting(&self, owners: &[Box<str>], change: &LogEntry) {
        let woken = self.waiting.woken_by(owners, || change.object());
        woken.into_iter().for_each(|owner| self.queue.add(GarbageItem::Finish(owner)));
    }

    async fn reconcile(&self, actor: &Actor, item: GarbageItem) -> Result<ReconcileOutcome, Box<Status>> {
        match item {
            GarbageItem::DeletedOwner(uid) => {
                actor.dependents(&uid).await?.into_iter().for_each(|d| self.queue.add(GarbageItem::Check(d)));
                Ok(ReconcileOutcome::Done)
            }
            GarbageItem::Check(object) => match actor.read(&object).await? {
                Some(stored) if stored.is_deleting() => {
                    if has_gc_finalizer(&stored) {
                        self.queue.add(GarbageItem::Finish(object));
                    }
                    Ok(ReconcileOutcome::Done)
                }
                Some(stored) => actor.check(&object, &stored).await.map(|()| ReconcileOutcome::Done),
                None => Ok(ReconcileOutcome::Done),
            },
            GarbageItem::Finish(object) => {
                if let Some(stored) = actor.read(&object).await?.filter(StoredObject::is_deleting) {
                    self.finish(actor, object, &stored).await?;
                }
                Ok(ReconcileOutcome::Done)
            }
        }
    }

    /// Orphans the dependents or waits for their deletion, then removes the finalizer.
    async fn finish(
        &self,
        actor: &Actor,
        object: ObjectRef,
        stored: &StoredObject,
    ) -> Result<(), Box<Status>> {
        let finalizers = stored.object().finalizers();
        if finalizers.contains(&ORPHAN) {
            actor.remove_owner_from_all(&actor.dependents(stored.uid()).await?, stored.uid()).await?;
            self.foreign_dependents.record_orphaned(stored.uid());
            return actor.remove_finalizer(&object, stored, ORPHAN).await;
        }
        if !finalizers.contains(&FOREGROUND) {
            return Ok(());
        }
        // Registered before the dependents are read, so that deletions in between are seen as events.
        self.waiting.register(stored.uid(), &object);
        let dependents = actor.dependents(stored.uid()).await?;
        if let Some(blocking) = actor.blocking(&dependents, stored.uid()).await? {
            self.waiting.wait_for(stored.uid(), blocking);
            dependents.into_iter().for_each(|dependent| self.queue.add(GarbageItem::Check(dependent)));
            return Ok(());
        }
        actor.remove_finalizer(&object, stored, FOREGROUND).await?;
        self.waiting.remove(stored.uid());
        Ok(())
    }
}

impl Listener for GarbageCollector {
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let (owners, deleting) = (registry.owners().await?, registry.deleting().await?);
            owners.into_iter().for_each(|uid| self.queue.add(GarbageItem::DeletedOwner(uid)));
            deleting.into_iter().for_each(|object| self.queue.add(GarbageItem::Finish(object)));
            Ok(())
        })
    }

    fn on_event(&self, change: &LogEntry) {
        if change.is_deleted() {
            self.queue.add(GarbageItem::DeletedOwner(change.uid().to_owned()));
            if change.resource().resource != EVENTS {
                self.foreign_dependents.record_deleted(change.uid());
            }
            self.waiting.remove(change.uid());
            return self.wake_waiting(change.owners(), change);
        }
        let stored = change.stored();
        if stored.is_deleting() && has_gc_finalizer(&stored) {
            self.queue.add(GarbageItem::Finish(change.object()));
        }
        self.wake_waiting(change.owners_before(), change);
        if !change.owners().is_empty() && change.owners() != change.owners_before() {
            self.queue.add(GarbageItem::Check(change.object()));
        }
    }
}

/// Returns true if the object has a finalizer of the garbage collector.
fn has_gc_finalizer(stored: &StoredObject) -> bool {
    stored.object().finalizers().iter().any(|finalizer| [ORPHAN, FOREGROUND].contains(finalizer))
}
