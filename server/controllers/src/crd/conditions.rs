//! Writes the conditions that were decided. Definitions are written side by side and share commits; the names that one is
//! about to get are taken while that is being written.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{Reconciled, run_workers as work};
use portico_machinery::{Reason, Status};
use portico_registry::{Context, Registry, Stored};

use super::condition_types::context;
use super::custom_resources::CustomResources;
use super::definition::Definition;
use super::index::Name;
use portico_registry::definition::resource as definitions;

/// How many definitions are written at a time: writes that are under way together share one commit, and each of them holds
/// a definition decoded, which is large.
const WORKERS: usize = 4;

impl CustomResources {
    /// Starts what writes conditions and what deletes instances, until `tasks` is cancelled (hook
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

#[derive(Clone)]
struct Writer {
    of: CustomResources,
    registry: Registry,
    context: Arc<Context>,
}

impl Writer {
    /// Writes until the status is right: what follows from one write does not wait for its event.
    async fn reconcile(&self, name: &Name) -> Result<Reconciled, Box<Status>> {
        let mut stored = match self.registry.get(&definitions(), "", name).await {
            Err(status) if status.reason() == Reason::NotFound => return Ok(Reconciled::Done),
            read => read?,
        };
        loop {
            let definition = self.read(name, &stored);
            let Some(verdict) = self.of.inner.index.lock().decide(name, &definition) else {
                return Ok(Reconciled::Done);
            };
            let mut object = stored.object().clone();
            verdict.apply(&mut object, Timestamp::now());
            let written = self.registry.update_status(&self.context, &definitions(), object).await;
            let now = written.as_ref().ok().map(|w| (self.read(name, &w.stored), w.stored.revision()));
            let mut index = self.of.inner.index.lock();
            self.of.act(index.written(name, now));
            match written {
                // A write that changes nothing does not get better by being made again.
                Ok(written) if written.stored.revision() == stored.revision() => return Ok(Reconciled::Done),
                Ok(written) => stored = written.stored,
                Err(status) if status.reason() == Reason::NotFound => return Ok(Reconciled::Done),
                Err(status) if status.reason() == Reason::Conflict => {
                    return Ok(Reconciled::Again(Duration::ZERO));
                }
                Err(status) => return Err(status),
            }
        }
    }

    fn read(&self, name: &Name, stored: &Stored) -> Definition {
        let known = self.of.inner.index.lock().get(name).cloned();
        Definition::read(stored, known.as_deref())
    }
}
