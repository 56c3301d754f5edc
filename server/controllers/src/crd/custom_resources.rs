//! Follows definitions, maintains the index for the controllers, and enqueues the definitions that a change affects.

use std::collections::HashSet;
use std::sync::Arc;

use futures::StreamExt;
use parking_lot::Mutex;
use portico_kit::backoff::Policy;
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, WorkQueue};
use portico_machinery::GroupVersion;
use portico_registry::definition::resource as definitions;
use portico_registry::{Change, Registry, Stored};

use super::definition::Definition;
use super::finalizer::Finalizer;
use super::index::{Effects, Index, Name};
use crate::auto_register::{AutoRegister, Desired, Mode};
use portico_routes::informers::InformerError;

/// Maximum number of changes applied under one lock.
const BATCH: usize = 512;

/// Handle of the controllers of all definitions. Cheap to clone.
#[derive(Clone)]
pub struct CustomResources {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) index: Mutex<Index>,
    /// Queue of definitions whose status must be decided.
    pub(super) deciding: WorkQueue<Name>,
    pub(super) finalizer: Finalizer,
    auto_register: AutoRegister,
    synced: Signal,
}

impl CustomResources {
    /// Creates the controllers. `auto_register` manages the APIServices of group versions that definitions serve.
    #[must_use]
    pub fn new(auto_register: AutoRegister, metrics: &QueueMetrics) -> Self {
        let deciding =
            WorkQueue::with_metrics("crd_naming_condition_controller", Policy::CONTROLLER, metrics);
        let inner = Inner {
            index: Mutex::default(),
            deciding,
            finalizer: Finalizer::new(metrics),
            auto_register,
            synced: Signal::new("DefinitionsSynced"),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns a signal that is set once all definitions that existed at the start are indexed and their APIServices are
    /// desired (check `crd-informer-synced`).
    #[must_use]
    pub fn synced(&self) -> Signal {
        self.inner.synced.clone()
    }

    /// Returns the finalizer, a listener that follows deletions of instances in the log.
    #[must_use]
    pub fn finalizer(&self) -> Finalizer {
        self.inner.finalizer.clone()
    }

    /// Follows definitions until `tasks` is cancelled.
    ///
    /// # Errors
    /// [`InformerError`] if definitions cannot be followed, or if the store closed.
    pub async fn run_informer(self, registry: Registry, tasks: TaskSet) -> Result<(), InformerError> {
        let followed = registry.follow(&definitions()).await.map_err(InformerError::Follow)?;
        self.apply(vec![Change::Relisted(followed.initial, followed.revision)]);
        self.inner.synced.signal();
        let (stop, mut batches) = (tasks.token(), followed.changes.ready_chunks(BATCH));
        while let Some(batch) = stop.run_until_cancelled(batches.next()).await {
            self.apply(batch.ok_or(InformerError::Closed)?);
        }
        Ok(())
    }

    pub(super) fn apply(&self, batch: Vec<Change>) {
        let mut index = self.inner.index.lock();
        for change in batch {
            match change {
                Change::Put(stored) => {
                    self.act(put(&mut index, &stored));
                    self.act(index.saw(stored.revision()));
                }
                Change::Deleted(stored) => {
                    self.act(index.remove(stored.name()));
                    self.act(index.saw(stored.revision()));
                }
                Change::Relisted(all, revision) => {
                    let left: HashSet<&str> = all.iter().map(Stored::name).collect();
                    let gone = index.names().filter(|name| !left.contains(&***name)).cloned();
                    for name in gone.collect::<Vec<_>>() {
                        self.act(index.remove(&name));
                    }
                    all.iter().for_each(|stored| self.act(put(&mut index, stored)));
                    self.act(index.saw(revision));
                }
            }
        }
    }

    /// Applies the effects of a change. Called with the index locked, so that effects are applied in the order of changes.
    pub(super) fn act(&self, effects: Effects) {
        for gone in &effects.vanished {
            self.inner.auto_register.undesire(&gone.api_service_name());
        }
        effects.appeared.into_iter().for_each(|served| self.inner.auto_register.desire(desired(served)));
        effects.decide.into_iter().for_each(|name| self.inner.deciding.add(name));
        effects.finalize.into_iter().for_each(|name| self.inner.finalizer.add(name));
    }
}

fn put(index: &mut Index, stored: &Stored) -> Effects {
    let known = index.get(stored.name()).cloned();
    let definition = Definition::read(stored, known.as_deref());
    index.put(&stored.name().into(), definition, stored.revision())
}

/// Returns the APIService of a group version, with the priorities that upstream assigns to custom resources.
fn desired(group_version: GroupVersion) -> Desired {
    Desired { group_version, group_priority_minimum: 1000, version_priority: 100, mode: Mode::Always }
}
