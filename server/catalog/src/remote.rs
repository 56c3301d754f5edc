//! What backends serve: fetched in the background, kept when a backend is away, never waited for by a request.
//!
//! As upstream's discovery manager and OpenAPI downloaders, with a better end: the last good answer stays and is marked stale.
//! One fetch serves all group versions of a service. A service that failed moves to a lane of its own, so that one that
//! hangs never stands in the way of one that answers.

mod discovery;
mod fetch;
mod known;
mod lanes;
mod legacy;
mod openapi;
mod readable;
mod services;

pub use fetch::{Answer, Fetch, FetchFailure, FetchFuture, Get};

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use portico_kit::backoff::Policy;
use portico_kit::tasks::TaskSet;
use portico_machinery::GroupVersion;
use portico_machinery::discovery::{Served, Source};
use portico_machinery::route::Route;

use crate::entries::Entries;
use lanes::{Lanes, Shape};
use services::{ServiceKey, Services};

/// How long a good answer is good.
const REFRESH: Duration = Duration::from_secs(60);
/// Discovery: small and quick.
const DISCOVERY: Shape = Shape {
    width: 16,
    patience: Duration::from_secs(1),
    retry: Policy {
        base: Duration::from_millis(500),
        max: Duration::from_secs(60),
        factor: 2.0,
        jitter: 0.2,
    },
    refresh: REFRESH,
};
/// OpenAPI: large, and nobody waits for it.
const OPENAPI: Shape = Shape {
    width: 4,
    patience: Duration::from_secs(4),
    retry: Policy { base: Duration::from_secs(1), max: Duration::from_secs(600), factor: 2.0, jitter: 0.2 },
    refresh: REFRESH,
};

/// The fetching half of the catalogue. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Remote {
    inner: Arc<Inner>,
}

struct Inner {
    fetch: Arc<dyn Fetch>,
    entries: Entries,
    services: Mutex<Services>,
    discovery: Lanes,
    openapi: Lanes,
}

impl Remote {
    pub fn new(fetch: Arc<dyn Fetch>, entries: Entries) -> Self {
        let inner = Inner {
            fetch,
            entries,
            services: Mutex::new(Services::default()),
            discovery: Lanes::new("catalog_discovery", "catalog_discovery_suspect", DISCOVERY),
            openapi: Lanes::new("catalog_openapi", "catalog_openapi_suspect", OPENAPI),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Starts fetching; ends with the task set.
    pub fn run(&self, tasks: &TaskSet) {
        let this = self.clone();
        self.inner.discovery.run(tasks, move |key| {
            let this = this.clone();
            async move { this.discover(&key).await }
        });
        let this = self.clone();
        self.inner.openapi.run(tasks, move |key| {
            let this = this.clone();
            async move { this.describe(&key).await }
        });
    }

    /// Takes routes by APIService name: new, changed or (nothing) gone. Never waits.
    pub fn routes(&self, changes: impl IntoIterator<Item = (String, Option<Arc<Route>>)>) {
        let mut dirty = Vec::new();
        let mut published = Vec::new();
        {
            let mut services = self.inner.services.lock();
            for (name, route) in changes {
                let effect = services.set_route(&name, route);
                dirty.extend(effect.fetch);
                published.extend(effect.touched);
            }
            self.publish(&services, published);
        }
        for key in dirty {
            self.inner.discovery.now(key);
        }
    }

    /// Recomputes the entries of these group versions.
    fn publish(&self, services: &Services, touched: impl IntoIterator<Item = GroupVersion>) {
        let entry = |gv: GroupVersion| {
            let served = services.served(&gv);
            let (group, version) = (gv.group, gv.version);
            (Served { group, version, source: Source::Aggregator, ..Served::default() }.key(), served)
        };
        self.inner.entries.set(touched.into_iter().map(entry));
    }

    /// One round of discovery of one service. An error is for the log and means: again, later.
    async fn discover(&self, key: &ServiceKey) -> Result<(), String> {
        let Some(job) = self.inner.services.lock().job(key) else { return Ok(()) };
        let found = discovery::fetch(&*self.inner.fetch, &job).await;
        let documents = self.inner.entries.documents();
        let mut services = self.inner.services.lock();
        let has_answered = found.is_ok();
        let result = match found {
            Ok(found) => {
                let result = found.result();
                services.discovered(key, &job, found, documents);
                result
            }
            Err(error) => {
                services.failed(key, &job);
                Err(error)
            }
        };
        let touched = services.members(key);
        self.publish(&services, touched);
        drop(services);
        if has_answered {
            self.inner.openapi.soon(key.clone());
        }
        result
    }

    /// One round of OpenAPI of one service.
    async fn describe(&self, key: &ServiceKey) -> Result<(), String> {
        let Some(job) = self.inner.services.lock().job(key) else { return Ok(()) };
        let found = openapi::fetch(&*self.inner.fetch, &job, self.inner.entries.documents()).await;
        let mut services = self.inner.services.lock();
        let result = services.described(key, &job, found);
        let touched = services.members(key);
        self.publish(&services, touched);
        result
    }

    #[cfg(test)]
    fn idle(&self) -> bool {
        self.inner.services.lock().is_empty()
    }
}

#[cfg(test)]
mod tests;
