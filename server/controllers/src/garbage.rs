//! Garbage collection (`garbage-collector-controller`): dependents of a deleted owner are orphaned, or deleted before or after
//! the owner.
//!
//! Reads the log and the store's owner index instead of building a graph. Changes missed before a start or by slow reading are
//! found in the index. Owners and dependents on other servers are looked up with requests (`aggregated`).

mod act;
pub mod aggregated;
pub mod decide;
mod waiting;

use std::sync::Arc;

use futures::future::BoxFuture;
use portico_kit::backoff::Policy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, Reconciled, WorkQueue, run_workers};
use portico_machinery::Status;
use portico_registry::{Logged, ObjectRef, Registry, Stored};

use crate::log::Listener;
use act::Actor;
use aggregated::{ForeignDependents, ForeignOwners, OtherServers};
use decide::{FOREGROUND, ORPHAN};
use waiting::Waiting;

/// Number of objects checked concurrently.
const WORKERS: usize = 4;

/// Events have no dependents and are numerous.
const EVENTS: &str = "events";

/// Item of the work queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Item {
    /// UID of an owner that is, or may be, deleted.
    Gone(String),
    /// An object with owners.
    Check(ObjectRef),
    /// An object that is being deleted and waits for its dependents.
    Finish(ObjectRef),
}

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct GarbageCollector {
    queue: WorkQueue<Item>,
    waiting: Waiting,
    foreign_owners: ForeignOwners,
    foreign_dependents: ForeignDependents,
}

impl GarbageCollector {
    /// Creates the controller. `others` are the API servers with objects that this server does not store.
    #[must_use]
    pub fn new(others: Arc<dyn OtherServers>, metrics: &QueueMetrics) -> Self {
        Self {
            queue: WorkQueue::with_metrics("garbage_collector", Policy::CONTROLLER, metrics),
            waiting: Waiting::default(),
            foreign_owners: ForeignOwners::new(Arc::clone(&others), metrics),
            foreign_dependents: ForeignDependents::new(others, metrics),
        }
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, actor) = (self.clone(), Actor::new(registry.clone(), self.foreign_owners.clone()));
        let queue = self.queue.clone();
        self.foreign_owners.run_workers(registry, tasks, move |uid| queue.add(Item::Gone(uid)));
        self.foreign_dependents.run_worker(&actor, tasks);
        run_workers(tasks, "garbage-collector", WORKERS, self.queue.clone(), move |item| {
            let (worker, actor) = (worker.clone(), actor.clone());
            async move { worker.reconcile(&actor, item).await }
        });
    }

    /// Enqueues those of these owners that wait for the object of a change.
    fn wake_waiting(&self, owners: &[Box<str>], change: &Logged) {
        let woken = self.waiting.woken_by(owners, || change.object());
        woken.into_iter().for_each(|owner| self.queue.add(Item::Finish(owner)));
    }

    async fn reconcile(&self, actor: &Actor, item: Item) -> Result<Reconciled, Box<Status>> {
        match item {
            Item::Gone(uid) => {
                actor.dependents(&uid).await?.into_iter().for_each(|d| self.queue.add(Item::Check(d)));
                Ok(Reconciled::Done)
            }
            Item::Check(object) => match actor.read(&object).await? {
                Some(stored) if stored.is_deleting() => {
                    if waits(&stored) {
                        self.queue.add(Item::Finish(object));
                    }
                    Ok(Reconciled::Done)
                }
                Some(stored) => actor.check(&object, &stored).await.map(|()| Reconciled::Done),
                None => Ok(Reconciled::Done),
            },
            Item::Finish(object) => {
                if let Some(stored) = actor.read(&object).await?.filter(Stored::is_deleting) {
                    self.finish(actor, object, &stored).await?;
                }
                Ok(Reconciled::Done)
            }
        }
    }

    /// Orphans the dependents or waits for their deletion, then removes the finalizer.
    async fn finish(&self, actor: &Actor, object: ObjectRef, stored: &Stored) -> Result<(), Box<Status>> {
        let finalizers = stored.object().finalizers();
        if finalizers.contains(&ORPHAN) {
            actor.release_all(&actor.dependents(stored.uid()).await?, stored.uid()).await?;
            self.foreign_dependents.orphaned(stored.uid());
            return actor.remove_finalizer(&object, stored, ORPHAN).await;
        }
        if !finalizers.contains(&FOREGROUND) {
            return Ok(());
        }
        // Registered before the dependents are read, so that deletions in between are seen as events.
        self.waiting.begin(stored.uid(), &object);
        let dependents = actor.dependents(stored.uid()).await?;
        if let Some(blocking) = actor.blocking(&dependents, stored.uid()).await? {
            self.waiting.wait_for(stored.uid(), blocking);
            dependents.into_iter().for_each(|dependent| self.queue.add(Item::Check(dependent)));
            return Ok(());
        }
        actor.remove_finalizer(&object, stored, FOREGROUND).await?;
        self.waiting.remove(stored.uid());
        Ok(())
    }
}

impl Listener for GarbageCollector {
    fn begin<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let (owners, deleting) = (registry.owners().await?, registry.deleting().await?);
            owners.into_iter().for_each(|uid| self.queue.add(Item::Gone(uid)));
            deleting.into_iter().for_each(|object| self.queue.add(Item::Finish(object)));
            Ok(())
        })
    }

    fn on_event(&self, change: &Logged) {
        if change.is_gone() {
            self.queue.add(Item::Gone(change.uid().to_owned()));
            if change.resource().resource != EVENTS {
                self.foreign_dependents.gone(change.uid());
            }
            self.waiting.remove(change.uid());
            return self.wake_waiting(change.owners(), change);
        }
        let stored = change.stored();
        if stored.is_deleting() && waits(&stored) {
            self.queue.add(Item::Finish(change.object()));
        }
        self.wake_waiting(change.owners_before(), change);
        if !change.owners().is_empty() && change.owners() != change.owners_before() {
            self.queue.add(Item::Check(change.object()));
        }
    }
}

/// Returns true if the object has a finalizer of the garbage collector.
fn waits(stored: &Stored) -> bool {
    stored.object().finalizers().iter().any(|finalizer| [ORPHAN, FOREGROUND].contains(finalizer))
}
