//! Writes the decided conditions. Concurrent writes share commits, and the names that a definition is about to get are reserved
//! during the write. Other control services on the same store also decide: a definition that gets names is written in a
//! transaction that checks its rivals, which request the same names; each process knows at least the earlier ones.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{Reconciled, run_workers as work};
use portico_machinery::{Object, Reason, Status};
use portico_registry::{Context, Registry, Stored, Written};

use super::condition_types::context;
use super::custom_resources::CustomResources;
use super::definition::Definition;
use super::index::Name;
use portico_registry::definition::resource as definitions;

/// Number of workers. Concurrent writes share one commit, and each of them holds a decoded definition, which is large.
const WORKERS: usize = 4;
/// Delay after a conflict: a change made by another process arrives shortly after the conflict.
const AFTER_CONFLICT: Duration = Duration::from_millis(10);

impl CustomResources {
    /// Starts the workers that write conditions and delete instances, until `tasks` is cancelled (hook
    /// `start-apiextensions-controllers`).
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let writer = Writer { of: self.clone(), registry: registry.clone(), context: Arc::new(context()) };
        work(tasks, "crd-conditions", WORKERS, self.inner.deciding.clone(), move |name| {
            let writer = writer.clone();
            async move { writer.reconcile(&name).await }
        });
        self.inner.finalizer.run_workers(registry, tasks);
    }
}

/// Status update of a definition.
struct Decided {
    /// The definition with its new status.
    object: Object,
    rivals: Vec<(Name, i64)>,
}

#[derive(Clone)]
struct Writer {
    of: CustomResources,
    registry: Registry,
    context: Arc<Context>,
}

impl Writer {
    /// Writes until the status is up to date: consequences of a write are handled without waiting for its event.
    async fn reconcile(&self, name: &Name) -> Result<Reconciled, Box<Status>> {
        let mut stored = match self.registry.get(&definitions(), "", name).await {
            Err(status) if status.reason() == Reason::NotFound => return Ok(Reconciled::Done),
            read => read?,
        };
        loop {
            let Some(decided) = self.decide(name, &stored) else { return Ok(Reconciled::Done) };
            let written = self.write(decided).await;
            let now = written.as_ref().ok().map(|w| (self.read(name, &w.stored), w.stored.revision()));
            let mut index = self.of.inner.index.lock();
            self.of.act(index.written(name, now));
            match written {
                // A write that changes nothing would not change anything on a retry either.
                Ok(written) if written.stored.revision() == stored.revision() => return Ok(Reconciled::Done),
                Ok(written) => stored = written.stored,
                Err(status) if status.reason() == Reason::NotFound => return Ok(Reconciled::Done),
                Err(status) if status.reason() == Reason::Conflict => {
                    return Ok(Reconciled::Again(AFTER_CONFLICT));
                }
                Err(status) => return Err(status),
            }
        }
    }

    fn decide(&self, name: &Name, stored: &Stored) -> Option<Decided> {
        let definition = self.read(name, stored);
        let mut index = self.of.inner.index.lock();
        let verdict = index.decide(name, &definition, stored.revision())?;
        let rivals = index.rivals(name, &definition, &verdict);
        drop(index);
        let mut object = stored.object().clone();
        verdict.apply(&mut object, Timestamp::now());
        Some(Decided { object, rivals })
    }

    /// Writes the new status.
    ///
    /// # Errors
    /// 409 if a rival has changed: another process may have accepted its names.
    async fn write(&self, decided: Decided) -> Result<Written, Box<Status>> {
        let Decided { object, rivals } = decided;
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
        self.registry.update_status_among(&self.context, &definitions(), object, &unchanged).await
    }

    fn read(&self, name: &Name, stored: &Stored) -> Definition {
        let known = self.of.inner.index.lock().get(name).cloned();
        Definition::read(stored, known.as_deref())
    }
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
