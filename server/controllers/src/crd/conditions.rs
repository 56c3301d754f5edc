//! Writes the decided conditions. Concurrent writes share commits, and the names that a definition is about to get are reserved
//! during the write. Other control services on the same store also decide: a definition that gets names is written in a
//! transaction that checks its rivals, which request the same names; each process knows at least the earlier ones.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{ReconcileOutcome, run_workers as work};
use portico_machinery::{Object, Reason, Status};
use portico_registry::{Context, Registry, StoredObject, WriteResult};

use super::condition_types::context;
use super::custom_resources::CustomResources;
use super::definition::Definition;
use super::index::DefinitionName;
use portico_registry::definition::resource as definitions;

/// Number of workers. Concurrent writes share one commit, and each of them holds a decoded definition, which is large.
const WORKERS: usize = 4;
/// Delay after a conflict: a change made by another process arrives shortly after the conflict.
const CONFLICT_DELAY: Duration = Duration::from_millis(10);

impl CustomResources {
    /// Starts the workers that write conditions and delete instances, until `tasks` is cancelled (hook
    /// `start-apiextensions-controllers`).
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let writer = ConditionWriter {
            controllers: self.clone(),
            registry: registry.clone(),
            context: Arc::new(context()),
        };
        work(tasks, "crd-conditions", WORKERS, self.inner.status_queue.clone(), move |name| {
            let writer = writer.clone();
            async move { writer.reconcile(&name).await }
        });
        self.inner.finalizer.run_workers(registry, tasks);
    }
}

/// Status update of a definition.
struct StatusUpdate {
    /// The definition with its new status.
    object: Object,
    rivals: Vec<(DefinitionName, i64)>,
}

#[derive(Clone)]
struct ConditionWriter {
    controllers: CustomResources,
    registry: Registry,
    context: Arc<Context>,
}

impl ConditionWriter {
    /// Writes until the status is up to date: consequences of a write are handled without waiting for its event.
    async fn reconcile(&self, name: &DefinitionName) -> Result<ReconcileOutcome, Box<Status>> {
        let mut stored = match self.registry.get(&definitions(), "", name).await {
            Err(status) if status.reason() == Reason::NotFound => return Ok(ReconcileOutcome::Done),
            read => read?,
        };
        loop {
            let Some(update) = self.decide(name, &stored) else { return Ok(ReconcileOutcome::Done) };
            let written = self.write(update).await;
            let written_definition =
                written.as_ref().ok().map(|w| (self.read(name, &w.stored), w.stored.revision()));
            let mut index = self.controllers.inner.index.lock();
            self.controllers.apply_effects(index.finish_write(name, written_definition));
            match written {
                // A write that changes nothing would not change anything on a retry either.
                Ok(written) if written.stored.revision() == stored.revision() => {
                    return Ok(ReconcileOutcome::Done);
                }
                Ok(written) => stored = written.stored,
                Err(status) if status.reason() == Reason::NotFound => return Ok(ReconcileOutcome::Done),
                Err(status) if status.reason() == Reason::Conflict => {
                    return Ok(ReconcileOutcome::RequeueAfter(CONFLICT_DELAY));
                }
                Err(status) => return Err(status),
            }
        }
    }

    fn decide(&self, name: &DefinitionName, stored: &StoredObject) -> Option<StatusUpdate> {
        let definition = self.read(name, stored);
        let mut index = self.controllers.inner.index.lock();
        let verdict = index.decide(name, &definition, stored.revision())?;
        let rivals = index.rivals(name, &definition, &verdict);
        drop(index);
        let mut object = stored.object().clone();
        verdict.apply(&mut object, Timestamp::now());
        Some(StatusUpdate { object, rivals })
    }

    /// Writes the new status.
    ///
    /// # Errors
    /// 409 if a rival has changed: another process may have accepted its names.
    async fn write(&self, update: StatusUpdate) -> Result<WriteResult, Box<Status>> {
        let StatusUpdate { object, rivals } = update;
        let mut unchanged = Vec::new();
        for (rival, revision) in rivals {
            match self.registry.get(&definitions(), "", &rival).await {
                Ok(stored) if stored.revision() == revision => unchanged.push(stored),
                // The rival is decided once it is readable again.
                Err(status) if status.reason() == Reason::StorageReadError => {}
                Err(status) if status.reason() != Reason::NotFound => return Err(status),
                _ => {
                    return Err(Box::new(Status::conflict(
                        &definitions(),
                        &rival,
                        "the definition has changed",
                    )));
                }
            }
        }
        self.registry.update_status_if_unchanged(&self.context, &definitions(), object, &unchanged).await
    }

    fn read(&self, name: &DefinitionName, stored: &StoredObject) -> Definition {
        let indexed = self.controllers.inner.index.lock().get(name).cloned();
        Definition::read(stored, indexed.as_deref())
    }
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
