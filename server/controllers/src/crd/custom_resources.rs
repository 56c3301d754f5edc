//! Follows definitions, maintains the index for the controllers, and enqueues the definitions that a change affects.

use std::collections::HashSet;
use std::sync::Arc;

use futures::StreamExt;
use parking_lot::Mutex;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, WorkQueue};
use portico_machinery::GroupVersion;
use portico_registry::definition::resource as definitions;
use portico_registry::{Change, Registry, StoredObject};

use super::definition::Definition;
use super::finalizer::Finalizer;
use super::index::{CrdIndex, DefinitionName, Effects};
use crate::auto_register::{AutoRegister, DesiredApiService, ManagedMode};
use portico_routes::informers::InformerError;

/// Maximum number of changes applied under one lock.
const MAX_BATCH_SIZE: usize = 512;

/// Handle of the controllers of all definitions. Cheap to clone.
#[derive(Clone)]
pub struct CustomResources {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) index: Mutex<CrdIndex>,
    /// Queue of definitions whose status must be decided.
    pub(super) status_queue: WorkQueue<DefinitionName>,
    pub(super) finalizer: Finalizer,
    auto_register: AutoRegister,
    synced: Signal,
}

impl CustomResources {
    /// Creates the controllers. `auto_register` manages the APIServices of group versions that definitions serve.
    #[must_use]
    pub fn new(auto_register: AutoRegister, metrics: &QueueMetrics) -> Self {
        let status_queue =
            WorkQueue::with_metrics("crd_naming_condition_controller", BackoffPolicy::CONTROLLER, metrics);
        let inner = Inner {
            index: Mutex::default(),
            status_queue,
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
        let feed = registry.follow(&definitions()).await.map_err(InformerError::Follow)?;
        self.apply(vec![Change::Relisted(feed.initial, feed.revision)]);
        self.inner.synced.signal();
        let (stop, mut batches) = (tasks.token(), feed.changes.ready_chunks(MAX_BATCH_SIZE));
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
                    self.apply_effects(put(&mut index, &stored));
                    self.apply_effects(index.advance(stored.revision()));
                }
                Change::Deleted(stored) => {
                    self.apply_effects(index.remove(stored.name()));
                    self.apply_effects(index.advance(stored.revision()));
                }
                Change::Relisted(all, revision) => {
                    let existing: HashSet<&str> = all.iter().map(StoredObject::name).collect();
                    let deleted = index.names().filter(|name| !existing.contains(&***name)).cloned();
                    for name in deleted.collect::<Vec<_>>() {
                        self.apply_effects(index.remove(&name));
                    }
                    all.iter().for_each(|stored| self.apply_effects(put(&mut index, stored)));
                    self.apply_effects(index.advance(revision));
                }
            }
        }
    }

    /// Applies the effects of a change. Called with the index locked, so that effects are applied in the order of changes.
    pub(super) fn apply_effects(&self, effects: Effects) {
        for group_version in &effects.vanished {
            self.inner.auto_register.remove_desired(&group_version.api_service_name());
        }
        effects
            .appeared
            .into_iter()
            .for_each(|served| self.inner.auto_register.add_desired(desired_api_service(served)));
        effects.decide.into_iter().for_each(|name| self.inner.status_queue.add(name));
        effects.finalize.into_iter().for_each(|name| self.inner.finalizer.add(name));
    }
}

fn put(index: &mut CrdIndex, stored: &StoredObject) -> Effects {
    let indexed = index.get(stored.name()).cloned();
    let definition = Definition::read(stored, indexed.as_deref());
    index.put(&stored.name().into(), definition, stored.revision())
}

/// Returns the APIService of a group version, with the priorities that upstream assigns to custom resources.
fn desired_api_service(group_version: GroupVersion) -> DesiredApiService {
    DesiredApiService {
        group_version,
        group_priority_minimum: 1000,
        version_priority: 100,
        mode: ManagedMode::Always,
    }
}
