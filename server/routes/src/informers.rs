//! The one follower of APIServices, Services and EndpointSlices, and the one index of them: for routes and for controllers
//! (hook `start-kube-aggregator-informers`).
//!
//! Objects are decoded once, read into facts, and dropped; handlers get the names of the APIServices that an event
//! touches. It must not know what they do about it, and a handler must not wait for anything.

use std::sync::Arc;

use futures::stream::{BoxStream, StreamExt};
use parking_lot::{RwLock, RwLockReadGuard};
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_machinery::Status;
use portico_machinery::resolve::{ServiceKey, Touched, Watched};
use portico_registry::{Change, Registry};

use crate::Index;

/// Events applied under one lock, at most.
const BATCH: usize = 512;

/// Why events no longer arrive.
#[derive(Debug, thiserror::Error)]
pub enum InformerError {
    /// A resource cannot be followed.
    #[error("cannot watch the resource of an informer: {0}")]
    Follow(Box<Status>),
    /// The store closed.
    #[error("the store is closed")]
    Closed,
}

/// What happened to which resource, several at once when they come faster than they are read.
type Batches = BoxStream<'static, Vec<(Watched, Change)>>;

/// Gets the index after some events, the names that they touch, and the revision that it is at (0 when the change was not
/// about objects). Called in order, under the index' read lock.
pub type Handler = Arc<dyn Fn(&Index, &Touched, i64) + Send + Sync>;

/// The index and its handlers. Cheap to clone.
#[derive(Clone, Default)]
pub struct Informers {
    inner: Arc<Inner>,
}

struct Inner {
    index: RwLock<Index>,
    handlers: RwLock<Vec<Handler>>,
    synced: Signal,
}

impl Default for Inner {
    fn default() -> Self {
        let (index, handlers) = (RwLock::default(), RwLock::default());
        Self { index, handlers, synced: Signal::new("InformersSynced") }
    }
}

impl Informers {
    /// Adds a handler. One that is added before [`Informers::run`] gets everything that is there at the start.
    pub fn on_change(&self, handler: Handler) {
        self.inner.handlers.write().push(handler);
    }

    /// The index. Hold the guard briefly: events wait for it.
    pub fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.inner.index.read()
    }

    /// Given once everything that was there at the start is known.
    #[must_use]
    pub fn synced(&self) -> Signal {
        self.inner.synced.clone()
    }

    /// Follows the registry until `tasks` is cancelled.
    ///
    /// # Errors
    /// [`InformerError`]: a resource cannot be followed, or the store closed.
    pub async fn run(self, registry: Registry, tasks: TaskSet) -> Result<(), InformerError> {
        let mut batches = self.fill(&registry).await?;
        self.inner.synced.signal();
        let stop = tasks.token();
        while let Some(batch) = stop.run_until_cancelled(batches.next()).await {
            self.apply(batch.ok_or(InformerError::Closed)?);
        }
        Ok(())
    }

    async fn fill(&self, registry: &Registry) -> Result<Batches, InformerError> {
        let resources = Watched::ALL.map(|watched| (watched, watched.resource()));
        let followed = registry.follow_together(resources).await.map_err(InformerError::Follow)?;
        let revision = followed.revision;
        let initial = followed.initial.into_iter();
        self.apply(initial.map(|(watched, all)| (watched, Change::Relisted(all, revision))).collect());
        Ok(followed.changes.ready_chunks(BATCH).boxed())
    }

    fn apply(&self, batch: Vec<(Watched, Change)>) {
        self.change(|index, touched| {
            let revisions = batch.into_iter().map(|(watched, change)| apply(index, watched, change, touched));
            revisions.max().unwrap_or(0)
        });
    }

    /// Changes the index and calls the handlers. `change` answers the revision that the index is at then, 0 when the change
    /// is not about objects.
    pub fn change(&self, change: impl FnOnce(&mut Index, &mut Touched) -> i64) {
        let mut touched = Touched::new();
        let mut index = self.inner.index.write();
        let revision = change(&mut index, &mut touched);
        // Readers may come in, another event may not: handlers are called in the order of events.
        let index = parking_lot::RwLockWriteGuard::downgrade(index);
        for handler in self.inner.handlers.read().iter() {
            handler(&index, &touched, revision);
        }
    }
}

/// Applies one change and answers its revision.
fn apply(index: &mut Index, watched: Watched, change: Change, touched: &mut Touched) -> i64 {
    match change {
        Change::Put(stored) => {
            index.put(watched, stored.object(), touched);
            stored.revision()
        }
        Change::Deleted(stored) => {
            index.remove(watched, ServiceKey::new(stored.namespace(), stored.name()), touched);
            stored.revision()
        }
        Change::Relisted(all, revision) => {
            // One after another: all of them decoded at once would be large.
            index.replace(watched, all.into_iter().map(|stored| stored.object().clone()), touched);
            revision
        }
    }
}
