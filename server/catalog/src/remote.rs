//! Fetches discovery and OpenAPI of backends in the background, and keeps them while a backend is unavailable. Requests never
//! wait for a fetch.
//!
//! Follows upstream's discovery manager and OpenAPI downloader, except that the last good document is kept and marked as stale.
//! One fetch serves all group versions of a service. A service that failed is fetched through a separate queue, so that a hanging
//! service never delays a healthy one.

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

/// Interval between fetches from a healthy service.
const REFRESH: Duration = Duration::from_secs(60);
/// Settings for discovery, whose documents are small and fetched quickly.
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
/// Settings for OpenAPI, whose documents are large and not urgent.
const OPENAPI: Shape = Shape {
    width: 4,
    patience: Duration::from_secs(4),
    retry: Policy { base: Duration::from_secs(1), max: Duration::from_secs(600), factor: 2.0, jitter: 0.2 },
    refresh: REFRESH,
};

/// Fetcher of documents from backends. Cheap to clone.
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

    /// Starts fetching, until the task set is cancelled.
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

    /// Applies changes of routes by APIService name; `None` for removed ones. Never blocks.
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

    /// Publishes the current entries of these group versions.
    fn publish(&self, services: &Services, touched: impl IntoIterator<Item = GroupVersion>) {
        let entry = |gv: GroupVersion| {
            let served = services.served(&gv);
            let (group, version) = (gv.group, gv.version);
            (Served { group, version, source: Source::Aggregator, ..Served::default() }.key(), served)
        };
        self.inner.entries.set(touched.into_iter().map(entry));
    }

    /// Fetches discovery of one service. An error is logged and causes a retry.
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

    /// Fetches OpenAPI of one service.
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
