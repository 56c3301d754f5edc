//! Registration controller: recompiles routes when objects change.
//!
//! Implemented as a handler of [`Informers`]. Readers of compiled routes take short read locks (Explain, the resolver); readers
//! of the published table take none.

use std::sync::Arc;

use parking_lot::RwLock;
use portico_kit::lifecycle::Signal;
use portico_machinery::resolve::AffectedApiServices;
use portico_machinery::route::{ResolveError, Route, ServiceReference, Target};

use crate::explain::{ExplainSource, Stage, explain};
use crate::informers::Informers;
use crate::table::Table;
use crate::{CompiledRoute, LocalGroupVersion, Publisher, RouteIndex, Settings};

/// Compiled routes. Cheap to clone.
#[derive(Clone)]
pub struct Routes {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    informers: Informers,
    table: RwLock<Table>,
    publisher: Publisher,
    initiated: Signal,
}

impl Routes {
    /// Routes of the objects that `informers` follow. The given group versions of the local chain are routed immediately.
    #[must_use]
    pub fn new(
        settings: Settings,
        informers: &Informers,
        local_group_versions: impl IntoIterator<Item = LocalGroupVersion>,
    ) -> Self {
        let inner = Arc::new(Inner {
            publisher: Publisher::new(settings.history),
            settings,
            informers: informers.clone(),
            table: RwLock::default(),
            initiated: Signal::new("APIServiceRegistrationControllerInitiated"),
        });
        // Weak, because the handler and the routes would otherwise keep each other alive.
        let weak = Arc::downgrade(&inner);
        informers.on_change(Arc::new(move |index, affected, revision| {
            if let Some(inner) = weak.upgrade() {
                inner.recompile(index, affected, revision);
            }
        }));
        let routes = Self { inner };
        for local in local_group_versions {
            routes.set_local_group_version(local.group_version.api_service_name().into(), Some(local));
        }
        routes
    }

    /// Signaled once all initial objects are routed.
    #[must_use]
    pub fn initiated(&self) -> Signal {
        self.inner.initiated.clone()
    }

    /// Publisher of snapshots and deltas.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        self.inner.publisher.clone()
    }

    /// Marks the table as complete, so that facades receive it, once the informers have read all initial objects.
    pub async fn run(self) {
        self.inner.informers.synced().signaled().await;
        self.inner.publisher.mark_complete();
        self.inner.initiated.signal();
    }

    /// Sets or removes a group version of the local chain (when definitions change), under the name of its APIService.
    pub fn set_local_group_version(&self, name: Arc<str>, group_version: Option<LocalGroupVersion>) {
        self.inner.informers.change(|index, affected| {
            index.set_local_group_version(name, group_version, affected);
            0
        });
    }

    /// Reads the index under a short lock.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&RouteIndex) -> T) -> T {
        read(&self.inner.informers.index())
    }

    /// Compiled route with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<CompiledRoute> {
        self.inner.table.read().get(name).cloned()
    }

    /// All compiled routes, sorted by name.
    #[must_use]
    pub fn list(&self) -> Vec<CompiledRoute> {
        self.inner.table.read().iter().cloned().collect()
    }

    /// Published routes, sorted by name.
    #[must_use]
    pub fn published(&self) -> Vec<Arc<Route>> {
        self.inner.table.read().iter().filter(|c| c.is_published()).map(|c| c.route.clone()).collect()
    }

    /// Current addresses of a Service, for webhooks and other clients.
    ///
    /// # Errors
    /// Reason for which the Service has no address.
    pub fn resolve(&self, service: &ServiceReference) -> Result<Vec<Target>, ResolveError> {
        match &self.inner.settings.loopback {
            Some(own) if crate::compiler::is_own_service(service) => Ok(vec![own.clone()]),
            _ => self.inner.informers.index().services().resolve(self.inner.settings.mode, service),
        }
    }

    /// Stages of the reachability of a group version. `query` is a path, `group/version`, or the name of an APIService.
    #[must_use]
    pub fn explain(&self, query: &str, source: &dyn ExplainSource) -> Vec<Stage> {
        // Locks are taken in the same order as by changes.
        let index = self.inner.informers.index();
        let table = self.inner.table.read();
        explain(&index, &table, query, self.inner.publisher.revision(), source)
    }
}

impl Inner {
    /// Compiles the affected routes and publishes the changes.
    fn recompile(&self, index: &RouteIndex, affected: &AffectedApiServices, revision: i64) {
        let mut table = self.table.write();
        let revision = revision.max(self.publisher.revision());
        let changes = table.recompile(index, &self.settings, affected, revision);
        // Under the lock, so that changes are published in the order in which they were made.
        self.publisher.publish(revision, changes);
    }
}
