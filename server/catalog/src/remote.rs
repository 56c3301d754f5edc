//! Fetches discovery and OpenAPI of backends in the background, and keeps them while a backend is unavailable. Requests never
//! wait for a fetch.
//!
//! Follows upstream's discovery manager and OpenAPI downloader, except that the last good document is kept and marked as stale.
//! One fetch serves all group versions of a service. A service that failed is fetched through a separate queue, so that a hanging
//! service never delays a healthy one.

mod discovery;
mod fetch;
mod fetch_queues;
mod legacy;
mod openapi;
mod readable_entries;
mod service_state;
mod services;

pub use fetch::{Fetch, FetchFailure, FetchFuture, FetchedDocument, GetRequest};

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_machinery::GroupVersion;
use portico_machinery::discovery::{ServedVersion, Source};
use portico_machinery::route::Route;

use crate::entries::Entries;
use fetch_queues::{FetchQueues, QueueSettings};
use services::{ServiceKey, Services};

/// Interval between fetches from a healthy service.
const REFRESH_INTERVAL: Duration = Duration::from_secs(60);
/// Settings for discovery, whose documents are small and fetched quickly.
const DISCOVERY: QueueSettings = QueueSettings {
    concurrency: 16,
    slow_after: Duration::from_secs(1),
    retry: BackoffPolicy {
        base: Duration::from_millis(500),
        max: Duration::from_secs(60),
        factor: 2.0,
        jitter: 0.2,
    },
    refresh: REFRESH_INTERVAL,
};
/// Settings for OpenAPI, whose documents are large and not urgent.
const OPENAPI: QueueSettings = QueueSettings {
    concurrency: 4,
    slow_after: Duration::from_secs(4),
    retry: BackoffPolicy {
        base: Duration::from_secs(1),
        max: Duration::from_secs(600),
        factor: 2.0,
        jitter: 0.2,
    },
    refresh: REFRESH_INTERVAL,
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
    discovery: FetchQueues,
    openapi: FetchQueues,
}

impl Remote {
    pub fn new(fetch: Arc<dyn Fetch>, entries: Entries) -> Self {
        let inner = Inner {
            fetch,
            entries,
            services: Mutex::new(Services::default()),
            discovery: FetchQueues::new("catalog_discovery", "catalog_discovery_suspect", DISCOVERY),
            openapi: FetchQueues::new("catalog_openapi", "catalog_openapi_suspect", OPENAPI),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Starts fetching, until the task set is cancelled.
    pub fn run(&self, tasks: &TaskSet) {
        let this = self.clone();
        self.inner.discovery.run(tasks, move |key| {
            let this = this.clone();
            async move { this.fetch_discovery(&key).await }
        });
        let this = self.clone();
        self.inner.openapi.run(tasks, move |key| {
            let this = this.clone();
            async move { this.fetch_openapi(&key).await }
        });
    }

    /// Applies changes of routes by APIService name; `None` for removed ones. Never blocks.
    pub fn set_routes(&self, changes: impl IntoIterator<Item = (String, Option<Arc<Route>>)>) {
        let mut changed_services = Vec::new();
        let mut affected = Vec::new();
        {
            let mut services = self.inner.services.lock();
            for (name, route) in changes {
                let effect = services.set_route(&name, route);
                changed_services.extend(effect.fetch);
                affected.extend(effect.affected);
            }
            self.publish(&services, affected);
        }
        for key in changed_services {
            self.inner.discovery.enqueue_now(key);
        }
    }

    /// Publishes the current entries of these group versions.
    fn publish(&self, services: &Services, affected: impl IntoIterator<Item = GroupVersion>) {
        let entry = |gv: GroupVersion| {
            let served = services.entry(&gv);
            let (group, version) = (gv.group, gv.version);
            (
                ServedVersion { group, version, source: Source::Aggregator, ..ServedVersion::default() }
                    .key(),
                served,
            )
        };
        self.inner.entries.set(affected.into_iter().map(entry));
    }

    /// Fetches discovery of one service. An error is logged and causes a retry.
    async fn fetch_discovery(&self, key: &ServiceKey) -> Result<(), String> {
        let Some(job) = self.inner.services.lock().job(key) else { return Ok(()) };
        let fetched = discovery::fetch_discovery(&*self.inner.fetch, &job).await;
        let documents = self.inner.entries.documents();
        let mut services = self.inner.services.lock();
        let is_reachable = fetched.is_ok();
        let result = match fetched {
            Ok(discovery) => {
                let result = discovery.result();
                services.set_discovery(key, &job, discovery, documents);
                result
            }
            Err(error) => {
                services.set_failed(key, &job);
                Err(error)
            }
        };
        let affected = services.members(key);
        self.publish(&services, affected);
        drop(services);
        if is_reachable {
            self.inner.openapi.enqueue_soon(key.clone());
        }
        result
    }

    /// Fetches OpenAPI of one service.
    async fn fetch_openapi(&self, key: &ServiceKey) -> Result<(), String> {
        let Some(job) = self.inner.services.lock().job(key) else { return Ok(()) };
        let fetched = openapi::fetch_openapi(&*self.inner.fetch, &job, self.inner.entries.documents()).await;
        let mut services = self.inner.services.lock();
        let result = services.set_openapi(key, &job, fetched);
        let affected = services.members(key);
        self.publish(&services, affected);
        result
    }

    #[cfg(test)]
    fn is_idle(&self) -> bool {
        self.inner.services.lock().is_empty()
    }
}

#[cfg(test)]
mod tests;
