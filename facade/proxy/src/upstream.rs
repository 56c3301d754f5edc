//! One entry of the route table as the proxy sees it: the route, its trust, and the transport once it is needed.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use portico_machinery::route::{Backend, Route, Trust};

use crate::backend_counts::BackendCounts;
use crate::mirror::Mirror;
use crate::mirror_counts::Mirrored;
use crate::observation::{Observation, TargetState};
use crate::transport::{Transport, TransportError};

/// A route to a backend. Cheap to make for every entry: CA bundles are parsed and transports looked up at first use.
#[derive(Debug)]
pub struct Upstream {
    route: Arc<Route>,
    ca: Option<Bytes>,
    slot: OnceLock<Result<Arc<Transport>, Arc<TransportError>>>,
    /// What has become of requests to its Service; nothing before the first one.
    counts: OnceLock<Arc<BackendCounts>>,
    /// Nothing where no policy asks for copies.
    mirror: OnceLock<Option<Box<Mirror>>>,
}

impl Upstream {
    /// An entry for this route. `bundles` finds a CA bundle (PEM) by its hash; one that is missing makes
    /// requests answer 500 with that reason, and nothing else.
    pub fn new(route: Arc<Route>, bundles: &dyn Fn(&str) -> Option<Bytes>) -> Self {
        let ca = match route.backend.as_ref().map(|backend| &backend.trust) {
            Some(Trust::Bundle(hash)) => bundles(hash),
            _ => None,
        };
        Self { route, ca, slot: OnceLock::new(), counts: OnceLock::new(), mirror: OnceLock::new() }
    }

    /// Takes the place of another entry for the same APIService: what is counted of their Service goes on.
    pub fn follow(&self, before: &Self) {
        let Some(counts) = before.counts.get() else { return };
        if self.route.backend.as_ref().is_some_and(|backend| backend.service == counts.service) {
            // A request may have come first, and found the same ones.
            let _ = self.counts.set(counts.clone());
        }
    }

    /// The route.
    pub fn route(&self) -> &Route {
        &self.route
    }

    /// The route, to be put into another entry.
    pub fn shared_route(&self) -> Arc<Route> {
        self.route.clone()
    }

    /// What this facade last saw of the backend; nothing before the first request.
    pub fn observation(&self) -> Option<Observation> {
        self.slot.get()?.as_ref().ok()?.observation()
    }

    /// Its addresses as this facade sees them; none before the first request.
    pub fn target_states(&self) -> Vec<TargetState> {
        self.slot.get().and_then(|slot| slot.as_ref().ok()).map_or_else(Vec::new, |one| one.target_states())
    }

    /// Requests under way to the backend, through whichever route.
    pub fn in_flight(&self) -> usize {
        self.slot.get().and_then(|slot| slot.as_ref().ok()).map_or(0, |transport| transport.in_flight())
    }

    /// What this facade has sent to the backend's mirror; nothing where there is none, and before the first request.
    pub fn mirrored(&self) -> Option<Mirrored> {
        self.mirror.get()?.as_ref().map(|mirror| mirror.mirrored())
    }

    /// What is counted of its Service, looked up by `find` at first use.
    pub(crate) fn counts(&self, find: impl FnOnce() -> Arc<BackendCounts>) -> &Arc<BackendCounts> {
        self.counts.get_or_init(find)
    }

    /// The mirror, looked up by `find` at first use. One that cannot be used gets nothing.
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

    /// The transport, looked up by `find` at first use. The answer (also a refusal) stays until the route changes.
    pub(crate) fn transport(
        &self,
        find: impl FnOnce(&Backend, Option<&Bytes>) -> Result<Arc<Transport>, TransportError>,
    ) -> Option<Result<&Arc<Transport>, &Arc<TransportError>>> {
        let backend = self.route.backend.as_ref()?;
        Some(self.slot.get_or_init(|| find(backend, self.ca.as_ref()).map_err(Arc::new)).as_ref())
    }
}
