//! The registration controller: keeps the compiled table in step with the objects.
//!
//! It is a handler of [`Informers`]; readers take short read locks (Explain, the resolver) or none at all (they read the
//! publisher).

use std::sync::Arc;

use parking_lot::RwLock;
use portico_kit::lifecycle::Signal;
use portico_machinery::resolve::Touched;
use portico_machinery::route::{ResolveError, Route, ServiceReference, Target};

use crate::explain::{Evidence, Stage, explain};
use crate::informers::Informers;
use crate::table::Table;
use crate::{Compiled, Index, Installed, Publisher, Settings};

/// The compiled routes. Cheap to clone.
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
    /// Of what `informers` follow; the group versions that the local chain serves are routed from the start.
    #[must_use]
    pub fn new(
        settings: Settings,
        informers: &Informers,
        installed: impl IntoIterator<Item = Installed>,
    ) -> Self {
        let inner = Arc::new(Inner {
            publisher: Publisher::new(settings.history),
            settings,
            informers: informers.clone(),
            table: RwLock::default(),
            initiated: Signal::new("APIServiceRegistrationControllerInitiated"),
        });
        // Weak, or the informers' handler and the routes would keep each other.
        let weak = Arc::downgrade(&inner);
        informers.on_change(Arc::new(move |index, touched, revision| {
            if let Some(inner) = weak.upgrade() {
                inner.recompile(index, touched, revision);
            }
        }));
        let routes = Self { inner };
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

    /// Offers the table to facades once the informers know everything that was there at the start.
    pub async fn run(self) {
        self.inner.informers.synced().signaled().await;
        self.inner.publisher.complete();
        self.inner.initiated.signal();
    }

    /// The local chain begins or ceases to serve a group version (CRDs come and go), under its APIService's name.
    pub fn set_installed(&self, name: Arc<str>, installed: Option<Installed>) {
        self.inner.informers.change(|index, touched| {
            index.set_installed(name, installed, touched);
            0
        });
    }

    /// What is known now, under a short lock.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Index) -> T) -> T {
        look(&self.inner.informers.index())
    }

    /// One compiled route.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Compiled> {
        self.inner.table.read().get(name).cloned()
    }

    /// All compiled routes, sorted by name.
    #[must_use]
    pub fn list(&self) -> Vec<Compiled> {
        self.inner.table.read().iter().cloned().collect()
    }

    /// The published routes, sorted by name.
    #[must_use]
    pub fn published(&self) -> Vec<Arc<Route>> {
        self.inner.table.read().iter().filter(|c| c.is_published()).map(|c| c.route.clone()).collect()
    }

    /// Where a Service is now: for webhooks and whoever else dials one.
    ///
    /// # Errors
    /// Why there is nowhere to dial.
    pub fn resolve(&self, service: &ServiceReference) -> Result<Vec<Target>, ResolveError> {
        match &self.inner.settings.loopback {
            Some(own) if crate::compiler::is_own_service(service) => Ok(vec![own.clone()]),
            _ => self.inner.informers.index().services().resolve(self.inner.settings.mode, service),
        }
    }

    /// Why a group version is reachable or not, stage by stage; `asked` is a path, `group/version`, or the name of an
    /// APIService.
    #[must_use]
    pub fn explain(&self, asked: &str, evidence: &dyn Evidence) -> Vec<Stage> {
        // In the order in which a change takes the two locks.
        let index = self.inner.informers.index();
        let table = self.inner.table.read();
        explain(&index, &table, asked, self.inner.publisher.revision(), evidence)
    }
}

impl Inner {
    /// Compiles what a change touches and publishes what that changes.
    fn recompile(&self, index: &Index, touched: &Touched, revision: i64) {
        let mut table = self.table.write();
        let revision = revision.max(self.publisher.revision());
        let changes = table.recompile(index, &self.settings, touched, revision);
        // Under the lock, so that two changes are published in the order in which they were made.
        self.publisher.publish(revision, changes);
    }
}
