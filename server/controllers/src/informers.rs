//! One feed of APIServices, Services and EndpointSlices for all controllers here (hook `start-kube-aggregator-informers`).
//!
//! Objects are decoded once, read into facts, and dropped; handlers hear which APIServices an event touches. It must not
//! know what they do about it, and a handler must not wait for anything.

use std::sync::Arc;

use futures::stream::{BoxStream, SelectAll, StreamExt};
use parking_lot::{RwLock, RwLockReadGuard};
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_machinery::resolve::{Facts, Readings, ServiceKey, Touched, Watched};
use portico_machinery::{GroupResource, Status};
use portico_registry::{Change, Registry};

/// Events applied under one lock, at most.
const BATCH: usize = 512;

/// Why events no longer arrive.
#[derive(Debug, thiserror::Error)]
pub enum InformerError {
    /// A resource cannot be followed.
    #[error("cannot follow {resource}: {status}")]
    Follow {
        /// The resource.
        resource: GroupResource,
        /// Why.
        status: Box<Status>,
    },
    /// The store closed.
    #[error("the store has closed")]
    Closed,
}

/// What happened to which resource, several at once when they come faster than they are read.
type Batches = BoxStream<'static, Vec<(Watched, Change)>>;

/// Hears which APIServices an event touches, with the facts after it. Called in order, under the facts' read lock.
pub type Handler = Arc<dyn Fn(&Facts, &Touched) + Send + Sync>;

/// The facts and who wants to hear of changes. Cheap to clone.
#[derive(Clone)]
pub struct Informers {
    inner: Arc<Inner>,
}

struct Inner {
    facts: RwLock<Facts>,
    handlers: RwLock<Vec<Handler>>,
    synced: Signal,
}

impl Informers {
    /// Knows nothing yet. Others who follow the same objects share what is read off them.
    #[must_use]
    pub fn new(readings: Readings) -> Self {
        let facts = RwLock::new(Facts::new(readings));
        let (handlers, synced) = (RwLock::default(), Signal::new("InformersSynced"));
        Self { inner: Arc::new(Inner { facts, handlers, synced }) }
    }

    /// Adds a handler. One that is added before [`Informers::run`] hears of everything that is there at the start.
    pub fn on_change(&self, handler: Handler) {
        self.inner.handlers.write().push(handler);
    }

    /// The facts. Hold the guard briefly: events wait for it.
    pub fn facts(&self) -> RwLockReadGuard<'_, Facts> {
        self.inner.facts.read()
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
            let Some(batch) = batch else { return Err(InformerError::Closed) };
            self.change(|facts, touched| {
                for (watched, change) in batch {
                    apply(facts, watched, change, touched);
                }
            });
        }
        Ok(())
    }

    async fn fill(&self, registry: &Registry) -> Result<Batches, InformerError> {
        let (mut initial, mut streams) = (Vec::new(), SelectAll::new());
        for watched in Watched::ALL {
            let resource = watched.resource();
            let followed = registry.follow(&resource).await;
            let followed = followed.map_err(|status| InformerError::Follow { resource, status })?;
            initial.push((watched, Change::Relisted(followed.initial, followed.revision)));
            streams.push(followed.changes.map(move |change| (watched, change)).boxed());
        }
        self.tell(true, |facts, touched| {
            initial.into_iter().for_each(|(watched, change)| apply(facts, watched, change, touched));
        });
        Ok(streams.ready_chunks(BATCH).boxed())
    }

    /// Changes the facts and tells the handlers what that touches, if it touches anything.
    pub fn change(&self, change: impl FnOnce(&mut Facts, &mut Touched)) {
        self.tell(false, change);
    }

    /// `always`: what was there at the start is told also when that is nothing.
    fn tell(&self, always: bool, change: impl FnOnce(&mut Facts, &mut Touched)) {
        let mut touched = Touched::new();
        let mut facts = self.inner.facts.write();
        change(&mut facts, &mut touched);
        if touched.is_empty() && !always {
            return;
        }
        // Readers may come in, another event may not: handlers hear of events in order.
        let facts = parking_lot::RwLockWriteGuard::downgrade(facts);
        for handler in self.inner.handlers.read().iter() {
            handler(&facts, &touched);
        }
    }
}

fn apply(facts: &mut Facts, watched: Watched, change: Change, touched: &mut Touched) {
    match change {
        Change::Put(stored) => facts.put(watched, stored.object(), touched),
        Change::Deleted(stored) => {
            facts.remove(watched, ServiceKey::new(stored.namespace(), stored.name()), touched);
        }
        // One after another: all of them decoded at once would be large.
        Change::Relisted(all, _) => {
            facts.replace(watched, all.into_iter().map(|s| s.object().clone()), touched)
        }
    }
}
