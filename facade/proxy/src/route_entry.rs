//! One entry of the route table for the proxy: the route, its CA, and its transport once it is needed.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use portico_machinery::route::{Backend, Route, Trust};

use crate::backend_counts::BackendCounts;
use crate::mirror::Mirror;
use crate::mirror_counts::MirrorStats;
use crate::observation::{Observation, TargetState};
use crate::transport::{Transport, TransportError};

/// A route to a backend. Cheap to create for every entry of the table: CA bundles are parsed and transports
/// looked up on first use.
#[derive(Debug)]
pub struct RouteEntry {
    route: Arc<Route>,
    ca: Option<Bytes>,
    transport: OnceLock<Result<Arc<Transport>, Arc<TransportError>>>,
    /// Counters of the Service; empty before the first request.
    counts: OnceLock<Arc<BackendCounts>>,
    /// Contains `None` if no policy requests copies.
    mirror: OnceLock<Option<Box<Mirror>>>,
}

impl RouteEntry {
    /// Creates an entry for this route. `bundles` finds a CA bundle (PEM) by its hash; requests to an entry whose bundle is
    /// missing get 500 with that reason.
    pub fn new(route: Arc<Route>, bundles: &dyn Fn(&str) -> Option<Bytes>) -> Self {
        let ca = match route.backend.as_ref().map(|backend| &backend.trust) {
            Some(Trust::Bundle(hash)) => bundles(hash),
            _ => None,
        };
        Self { route, ca, transport: OnceLock::new(), counts: OnceLock::new(), mirror: OnceLock::new() }
    }

    /// Replaces another entry for the same APIService: takes over the counters if the Service is the same.
    pub fn take_counts(&self, previous: &Self) {
        let Some(counts) = previous.counts.get() else { return };
        if self.route.backend.as_ref().is_some_and(|backend| backend.service == counts.service) {
            // A request may have set the same counters already.
            let _ = self.counts.set(counts.clone());
        }
    }

    /// Returns the route.
    pub fn route(&self) -> &Route {
        &self.route
    }

    /// Returns the shared route, for use in another entry.
    pub fn shared_route(&self) -> Arc<Route> {
        self.route.clone()
    }

    /// Returns the last outcome at the backend; `None` before the first request.
    pub fn observation(&self) -> Option<Observation> {
        self.transport.get()?.as_ref().ok()?.observation()
    }

    /// Returns the state of each address; empty before the first request.
    pub fn target_states(&self) -> Vec<TargetState> {
        self.transport
            .get()
            .and_then(|slot| slot.as_ref().ok())
            .map_or_else(Vec::new, |one| one.target_states())
    }

    /// Requests in flight to the backend, through all routes.
    pub fn in_flight(&self) -> usize {
        self.transport.get().and_then(|slot| slot.as_ref().ok()).map_or(0, |transport| transport.in_flight())
    }

    /// Returns the counters of the backend's mirror; `None` without a mirror, and before the first request.
    pub fn mirror_stats(&self) -> Option<MirrorStats> {
        self.mirror.get()?.as_ref().map(|mirror| mirror.stats())
    }

    /// Returns the counters of the Service, looked up by `find` on first use.
    pub(crate) fn counts(&self, find: impl FnOnce() -> Arc<BackendCounts>) -> &Arc<BackendCounts> {
        self.counts.get_or_init(find)
    }

    /// Returns the mirror, looked up by `find` on first use. An invalid mirror gets no copies.
    pub(crate) fn mirror(
        &self,
        find: impl FnOnce(&Route, Option<&Bytes>) -> Option<Result<Mirror, TransportError>>,
    ) -> Option<&Mirror> {
        let found = self.mirror.get_or_init(|| {
            let found = find(&self.route, self.ca.as_ref())?;
            found
                .inspect_err(|error| {
                    tracing::warn!(route = self.route.name, %error, "cannot use the mirror of a route");
                })
                .ok()
                .map(Box::new)
        });
        found.as_deref()
    }

    /// Returns the transport, looked up by `find` on first use. The result, also an error, is kept until the route changes.
    pub(crate) fn transport(
        &self,
        find: impl FnOnce(&Backend, Option<&Bytes>) -> Result<Arc<Transport>, TransportError>,
    ) -> Option<Result<&Arc<Transport>, &Arc<TransportError>>> {
        let backend = self.route.backend.as_ref()?;
        Some(self.transport.get_or_init(|| find(backend, self.ca.as_ref()).map_err(Arc::new)).as_ref())
    }
}
