//! The shares of zones in the processors of nodes, read once for all Services until a node changes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use portico_machinery::{GroupResource, Status};
use portico_registry::{ListOptions, Logged, Registry, Stored};

use crate::service_endpoints::node;

type Shares = Option<Arc<BTreeMap<String, f64>>>;

/// See the module. Clones share it.
#[derive(Clone, Default)]
pub(super) struct ZoneShares(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// Changes of nodes so far.
    changes: u64,
    /// What was read, and after how many changes.
    read: Option<(u64, Shares)>,
}

impl ZoneShares {
    /// Those of the nodes that there are; nothing when too little is known of them.
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
        // A node that has changed meanwhile has them read again.
        self.0.lock().read = Some((changes, shares.clone()));
        Ok(shares)
    }

    /// Has them read again when a node counts otherwise than before.
    pub(super) fn on_node(&self, change: &Logged) {
        // Where nobody has read them, nodes are not decoded.
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

    /// Has them read again.
    pub(super) fn forget(&self) {
        let mut known = self.0.lock();
        known.changes += 1;
        known.read = None;
    }
}
