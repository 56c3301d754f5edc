//! The registration controller: keeps the compiled table in step with the objects.
//!
//! One writer (the loop in [`Routes::run`]); readers take short read locks (Explain, the resolver) or none at all (they
//! read the publisher).

use std::sync::Arc;

use futures::StreamExt;
use parking_lot::RwLock;
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_machinery::resolve::{Readings, Touched};
use portico_machinery::route::{ResolveError, Route, ServiceReference, Target};
use portico_registry::Registry;

use crate::explain::{Evidence, Stage, explain};
use crate::feed::{self, FeedError};
use crate::table::Table;
use crate::{Compiled, Index, Installed, Publisher, Settings};

/// The compiled routes. Cheap to clone.
#[derive(Clone)]
pub struct Routes {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    state: RwLock<State>,
    publisher: Publisher,
    initiated: Signal,
}

struct State {
    index: Index,
    table: Table,
}

impl Routes {
    /// Without objects; the group versions that the local chain serves are routed from the start. Others who follow the
    /// same objects share what is read off them.
    #[must_use]
    pub fn new(
        settings: Settings,
        readings: Readings,
        installed: impl IntoIterator<Item = Installed>,
    ) -> Self {
        let state = RwLock::new(State { index: Index::new(readings), table: Table::default() });
        let publisher = Publisher::new(settings.history);
        let initiated = Signal::new("APIServiceRegistrationControllerInitiated");
        let routes = Self { inner: Arc::new(Inner { settings, state, publisher, initiated }) };
        for one in installed {
            routes.set_installed(one.group_version.api_service_name().into(), Some(one));
        }
        routes
    }

    /// Given once every object that was there at the start is routed.
    #[must_use]
    pub fn initiated(&self) -> Signal {
        self.inner.initiated.clone()
    }

    /// Where readers get snapshots and deltas.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        self.inner.publisher.clone()
    }

    /// Follows the registry until `tasks` is cancelled.
    ///
    /// # Errors
    /// [`FeedError`]: a resource cannot be followed, or the store closed.
    pub async fn run(self, registry: Registry, tasks: TaskSet) -> Result<(), FeedError> {
        let feed::Feed { revision, initial, mut batches } = feed::follow(&registry).await?;
        self.change(|index, touched| {
            for (watched, change) in initial {
                feed::apply(index, watched, change, touched);
            }
            revision
        });
        self.inner.publisher.complete();
        self.inner.initiated.signal();
        let stop = tasks.token();
        while let Some(batch) = stop.run_until_cancelled(batches.next()).await {
            let Some(batch) = batch else { return Err(FeedError::Closed) };
            self.change(|index, touched| {
                let revisions =
                    batch.into_iter().map(|(watched, change)| feed::apply(index, watched, change, touched));
                revisions.max().unwrap_or(0)
            });
        }
        Ok(())
    }

    /// The local chain begins or ceases to serve a group version (CRDs come and go), under its APIService's name.
    pub fn set_installed(&self, name: Arc<str>, installed: Option<Installed>) {
        self.change(|index, touched| {
            index.set_installed(name, installed, touched);
            0
        });
    }

    /// The one way to change anything: change the index, compile what that touches, publish what that changes.
    /// `change` answers the revision that it is at, 0 when it is not about objects.
    fn change(&self, change: impl FnOnce(&mut Index, &mut Touched) -> i64) {
        let mut state = self.inner.state.write();
        let State { index, table } = &mut *state;
        let mut touched = Touched::new();
        let revision = change(index, &mut touched).max(self.inner.publisher.revision());
        let changes = table.recompile(index, &self.inner.settings, touched, revision);
        // Under the lock, so that two changes are published in the order in which they were made.
        self.inner.publisher.publish(revision, changes);
    }

    /// What is known now, under a short lock.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Index) -> T) -> T {
        look(&self.inner.state.read().index)
    }

    /// One compiled route.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Compiled> {
        self.inner.state.read().table.get(name).cloned()
    }

    /// All compiled routes, sorted by name.
    #[must_use]
    pub fn list(&self) -> Vec<Compiled> {
        self.inner.state.read().table.iter().cloned().collect()
    }

    /// The published routes, sorted by name.
    #[must_use]
    pub fn published(&self) -> Vec<Arc<Route>> {
        self.inner.state.read().table.iter().filter(|c| c.is_published()).map(|c| c.route.clone()).collect()
    }

    /// Where a Service is now: for webhooks and whoever else dials one.
    ///
    /// # Errors
    /// Why there is nowhere to dial.
    pub fn resolve(&self, service: &ServiceReference) -> Result<Vec<Target>, ResolveError> {
        let state = self.inner.state.read();
        match &self.inner.settings.loopback {
            Some(own) if crate::compiler::is_own_service(service) => Ok(vec![own.clone()]),
            _ => state.index.services().resolve(self.inner.settings.mode, service),
        }
    }

    /// Why a group version is reachable or not, stage by stage; `asked` is a path, `group/version`, or the name of an
    /// APIService.
    #[must_use]
    pub fn explain(&self, asked: &str, evidence: &dyn Evidence) -> Vec<Stage> {
        let state = self.inner.state.read();
        explain(&state.index, &state.table, asked, self.inner.publisher.revision(), evidence)
    }
}
