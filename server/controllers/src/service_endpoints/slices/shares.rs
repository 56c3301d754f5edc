//! Shares of zones in the CPU capacity of nodes, cached for all Services until a node changes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use portico_machinery::{GroupResource, Status};
use portico_registry::{ListOptions, LogEntry, Registry, StoredObject};

use crate::service_endpoints::node;

type Shares = Option<Arc<BTreeMap<String, f64>>>;

/// Cache of the shares. Clones share the cache.
#[derive(Clone, Default)]
pub(super) struct ZoneShares(Arc<Mutex<CachedShares>>);

#[derive(Default)]
struct CachedShares {
    /// Number of changes of nodes so far.
    changes: u64,
    /// Cached shares, and the number of changes when they were read.
    cached: Option<(u64, Shares)>,
}

impl ZoneShares {
    /// Returns the shares of the existing nodes; `None` if facts about nodes are missing.
    pub(super) async fn read(&self, registry: &Registry) -> Result<Shares, Box<Status>> {
        let changes = {
            let cache = self.0.lock();
            if let Some((changes, shares)) = &cache.cached
                && *changes == cache.changes
            {
                return Ok(shares.clone());
            }
            cache.changes
        };
        let all = registry.list(&GroupResource::new("", "nodes"), "", &ListOptions::default()).await?;
        let shares = node::zone_shares(all.items.iter().map(StoredObject::object)).map(Arc::new);
        // A change of a node in the meantime invalidates the shares again.
        self.0.lock().cached = Some((changes, shares.clone()));
        Ok(shares)
    }

    /// Invalidates the cache if a change of a node affects the shares.
    pub(super) fn on_node(&self, change: &LogEntry) {
        // Nodes are not decoded if nothing is cached.
        if self.0.lock().cached.is_none() {
            return self.invalidate();
        }
        let before = change.previous().filter(|_| !change.is_deleted());
        let has_same_share = |before: StoredObject| {
            node::zone_and_cpu(before.object()) == node::zone_and_cpu(change.stored().object())
        };
        if !before.is_some_and(has_same_share) {
            self.invalidate();
        }
    }

    /// Invalidates the cache.
    pub(super) fn invalidate(&self) {
        let mut cache = self.0.lock();
        cache.changes += 1;
        cache.cached = None;
    }
}
