//! The catalogue: fed from the stream, asked by the director.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use portico_machinery::GroupVersion;

use crate::discovery::{self, AddressRule};
use crate::document::DocumentSource;
use crate::openapi;
use crate::request::{Reply, Request};
use crate::shared::{Settings, Shared};
use crate::snapshot::Snapshot;
use crate::state::{Change, State};

/// Discovery and OpenAPI of everything that is served. One per facade; all methods may be called at any time.
pub struct Catalog {
    shared: Shared,
    state: Mutex<State>,
    /// Nothing after a change: the next request makes the next snapshot.
    current: ArcSwapOption<Snapshot>,
}

impl Catalog {
    /// An empty catalogue.
    #[must_use]
    pub fn new(settings: Settings, documents: Arc<dyn DocumentSource>) -> Self {
        Self {
            shared: Shared::new(settings, documents),
            state: Mutex::new(State::default()),
            current: ArcSwapOption::empty(),
        }
    }

    /// Tells the address that `/api` names, once it is bound.
    pub fn set_server_address(&self, address: impl Into<String>) {
        self.shared.server_address.store(Arc::new(address.into()));
    }

    /// Tells the address that `/api` names besides, to clients in a range.
    pub fn set_address_rule(&self, rule: Option<AddressRule>) {
        self.shared.address_rule.store(rule.map(Arc::new));
    }

    /// Applies changes of the stream. Cheap: documents are made when they are asked for.
    pub fn update(&self, changes: impl IntoIterator<Item = Change>) {
        let mut state = self.state.lock();
        let mut changed = false;
        for change in changes {
            changed |= state.apply(change);
        }
        if changed {
            self.current.store(None);
        }
    }

    /// Replaces everything by a snapshot of the stream.
    pub fn reset(&self, entries: impl IntoIterator<Item = Change>) {
        let mut state = self.state.lock();
        let mut next = State::default();
        for entry in entries {
            next.apply_over(&state, entry);
        }
        if next.routes != state.routes || next.served != state.served {
            *state = next;
            self.current.store(None);
        }
    }

    /// The hashes of all documents that entries name: what a facade keeps for times without a control service.
    #[must_use]
    pub fn documents(&self) -> std::collections::BTreeSet<String> {
        let state = self.state.lock();
        state.served.values().flat_map(|served| served.documents()).map(str::to_owned).collect()
    }

    /// The hashes of what aggregated discovery is put together of: what clients ask for first.
    #[must_use]
    pub fn discovery_documents(&self) -> std::collections::BTreeSet<String> {
        let state = self.state.lock();
        let hashes = state.served.values().map(|served| served.discovery.clone());
        hashes.filter(|hash| !hash.is_empty()).collect()
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        if let Some(snapshot) = self.current.load_full() {
            return snapshot;
        }
        let state = self.state.lock();
        // Whoever held the lock before us may have made it.
        self.current.load_full().unwrap_or_else(|| {
            let snapshot = Arc::new(Snapshot::new(&state));
            self.current.store(Some(snapshot.clone()));
            snapshot
        })
    }

    /// Answers a request for discovery or OpenAPI; nothing when the path is none of the catalogue's, or belongs to a
    /// backend, or names what is not served: the next in the chain answers then.
    pub async fn respond(&self, request: &Request<'_>) -> Option<Reply> {
        let segments: Vec<&str> = request.path.strip_prefix('/')?.split('/').collect();
        let snapshot = self.snapshot();
        match segments.as_slice() {
            ["api"] | ["api", ""] => Some(discovery::core(&self.shared, &snapshot, request).await),
            ["apis"] => Some(discovery::groups(&self.shared, &snapshot, request).await),
            ["apis", ""] => Some(discovery::legacy_groups(&snapshot, request)),
            ["apis", group] | ["apis", group, ""] => discovery::group(&snapshot, group, request),
            ["api", version] | ["api", version, ""] => {
                discovery::resources(&self.shared, &snapshot, &GroupVersion::new("", *version), request).await
            }
            ["apis", group, version] | ["apis", group, version, ""] => {
                discovery::resources(&self.shared, &snapshot, &GroupVersion::new(*group, *version), request)
                    .await
            }
            ["openapi", "v2"] => Some(openapi::v2(&self.shared, &snapshot, request).await),
            ["openapi", "v3"] => Some(openapi::v3_index(&self.shared, &snapshot, request)),
            ["openapi", "v3", ..] => {
                let key = request.path.strip_prefix("/openapi/v3/").unwrap_or_default();
                Some(openapi::v3(&self.shared, &snapshot, key, request).await)
            }
            _ => None,
        }
    }
}
