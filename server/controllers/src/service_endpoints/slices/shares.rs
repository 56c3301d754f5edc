//! Shares of zones in the CPU capacity of nodes, cached for all Services until a node changes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use portico_machinery::{GroupResource, Status};
use portico_registry::{ListOptions, Logged, Registry, Stored};

use crate::service_endpoints::node;

type Shares = Option<Arc<BTreeMap<String, f64>>>;

/// Cache of the shares. Clones share the cache.
#[derive(Clone, Default)]
pub(super) struct ZoneShares(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// Number of changes of nodes so far.
    changes: u64,
    /// Cached shares, and the number of changes when they were read.
    read: Option<(u64, Shares)>,
}

impl ZoneShares {
    /// Returns the shares of the existing nodes; `None` if facts about nodes are missing.
    pub(super) async fn read(&self, registry: &Registry) -> Result<Shares, Box<Status>> {
        let changes = {
            let known = self.0.lock();
            if let Some((changes, shares)) = &known.read
                && *changes == known.changes
            {
                return Ok(shares.clone());
            }
            known.changes
        };
        let all = registry.list(&GroupResource::new("", "nodes"), "", &ListOptions::default()).await?;
        let shares = node::shares(all.items.iter().map(Stored::object)).map(Arc::new);
        // A change of a node in the meantime invalidates the shares again.
        self.0.lock().read = Some((changes, shares.clone()));
        Ok(shares)
    }

    /// Invalidates the cache if a change of a node affects the shares.
    pub(super) fn on_node(&self, change: &Logged) {
        // Nodes are not decoded if nothing is cached.
        if self.0.lock().read.is_none() {
            return self.forget();
        }
        let before = change.before().filter(|_| !change.is_gone());
        let counts_alike =
            |before: Stored| node::counted(before.object()) == node::counted(change.stored().object());
        if !before.is_some_and(counts_alike) {
            self.forget();
        }
    }

    /// Invalidates the cache.
    pub(super) fn forget(&self) {
        let mut known = self.0.lock();
        known.changes += 1;
        known.read = None;
    }
}
