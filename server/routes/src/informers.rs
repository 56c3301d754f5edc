//! Informers of APIServices, Services and EndpointSlices with a common index, shared by routes and controllers
//! (hook `start-kube-aggregator-informers`).
//!
//! Objects are decoded once, read into facts, and dropped. Handlers receive the names of the APIServices that an event affects.
//! Handlers must not block.

use std::sync::Arc;

use futures::stream::{BoxStream, StreamExt};
use parking_lot::{RwLock, RwLockReadGuard};
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_machinery::Status;
use portico_machinery::resolve::{AffectedApiServices, FactSource, ServiceKey};
use portico_registry::{Change, Registry};

use crate::RouteIndex;

/// Maximum number of events applied under one lock.
const BATCH: usize = 512;

/// Reason for which the informers stopped.
#[derive(Debug, thiserror::Error)]
pub enum InformerError {
    /// A resource cannot be followed.
    #[error("cannot watch the resource of an informer: {0}")]
    Follow(Box<Status>),
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

/// Changes with their resources; several changes at once if they arrive faster than they are read.
type Batches = BoxStream<'static, Vec<(FactSource, Change)>>;

/// Handler of events. Receives the index, the affected names, and the revision of the index (0 if the change does not concern
/// objects). Called in order, under the read lock of the index.
pub type Handler = Arc<dyn Fn(&RouteIndex, &AffectedApiServices, i64) + Send + Sync>;

/// Index with its handlers. Cheap to clone.
#[derive(Clone, Default)]
pub struct Informers {
    inner: Arc<Inner>,
}

struct Inner {
    index: RwLock<RouteIndex>,
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
    /// Adds a handler. A handler added before [`Informers::run`] also receives the initial objects.
    pub fn on_change(&self, handler: Handler) {
        self.inner.handlers.write().push(handler);
    }

    /// Read access to the index. Events wait while the guard is held.
    pub fn index(&self) -> RwLockReadGuard<'_, RouteIndex> {
        self.inner.index.read()
    }

    /// Signaled once all initial objects are in the index.
    #[must_use]
    pub fn synced(&self) -> Signal {
        self.inner.synced.clone()
    }

    /// Follows the registry until `tasks` is cancelled.
    ///
    /// # Errors
    /// [`InformerError`]: a resource cannot be followed, or the store is closed.
    pub async fn run(self, registry: Registry, tasks: TaskSet) -> Result<(), InformerError> {
        let mut batches = self.apply_initial(&registry).await?;
        self.inner.synced.signal();
        let stop = tasks.token();
        while let Some(batch) = stop.run_until_cancelled(batches.next()).await {
            self.apply(batch.ok_or(InformerError::Closed)?);
        }
        Ok(())
    }

    async fn apply_initial(&self, registry: &Registry) -> Result<Batches, InformerError> {
        let resources = FactSource::ALL.map(|source| (source, source.resource()));
        let feed = registry.follow_all(resources).await.map_err(InformerError::Follow)?;
        let revision = feed.revision;
        let initial = feed.initial.into_iter();
        self.apply(initial.map(|(source, all)| (source, Change::Relisted(all, revision))).collect());
        Ok(feed.changes.ready_chunks(BATCH).boxed())
    }

    fn apply(&self, batch: Vec<(FactSource, Change)>) {
        self.change(|index, affected| {
            let revisions = batch.into_iter().map(|(source, change)| apply(index, source, change, affected));
            revisions.max().unwrap_or(0)
        });
    }

    /// Changes the index and calls the handlers. `change` returns the resulting revision of the index, 0 if the change does not
    /// concern objects.
    pub fn change(&self, change: impl FnOnce(&mut RouteIndex, &mut AffectedApiServices) -> i64) {
        let mut touched = AffectedApiServices::new();
        let mut index = self.inner.index.write();
        let revision = change(&mut index, &mut touched);
        // Allows readers but no other event, so that handlers are called in the order of events.
        let index = parking_lot::RwLockWriteGuard::downgrade(index);
        for handler in self.inner.handlers.read().iter() {
            handler(&index, &touched, revision);
        }
    }
}

/// Applies one change and returns its revision.
fn apply(
    index: &mut RouteIndex,
    source: FactSource,
    change: Change,
    affected: &mut AffectedApiServices,
) -> i64 {
    match change {
        Change::Put(stored) => {
            index.put(source, stored.object(), affected);
            stored.revision()
        }
        Change::Deleted(stored) => {
            index.remove(source, ServiceKey::new(stored.namespace(), stored.name()), affected);
            stored.revision()
        }
        Change::Relisted(all, revision) => {
            // Decoded one at a time: all objects together could need much memory.
            index.replace(source, all.into_iter().map(|stored| stored.object().clone()), affected);
            revision
        }
    }
}
