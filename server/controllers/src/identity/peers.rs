//! Follows the identity Leases of other servers behind the same address and passes on the addresses of these servers.
//!
//! Upstream stores the addresses separately from the Leases, only in etcd; since 1.36 an annotation contains them as well. Does
//! not depend on how the addresses are used.

use std::collections::BTreeMap;

use futures::StreamExt;
use portico_kit::tasks::TaskSet;
use portico_machinery::Status;
use portico_machinery::peer_addresses::{PeerAddress, PeerAddresses};
use portico_registry::{Change, Registry, StoredObject};

use super::{ADDRESS_ANNOTATION, COMPONENT, IDENTITY_LABEL, NAMESPACE, leases};

/// Error that ends the feed of peers.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    /// Leases cannot be followed.
    #[error("cannot watch identity leases: {0}")]
    Follow(Box<Status>),
    /// The store closed.
    #[error("the store is closed")]
    Closed,
}

/// Passes all peers of the server with this identity to `sink` whenever they change, until `tasks` is cancelled.
///
/// # Errors
/// Returns [`PeersError`] if Leases cannot be followed.
pub async fn run(
    registry: Registry,
    own_name: String,
    tasks: TaskSet,
    sink: impl Fn(&PeerAddresses) + Send + Sync + 'static,
) -> Result<(), PeersError> {
    let mut feed = registry.follow(&leases()).await.map_err(PeersError::Follow)?;
    let mut peers = PeerLeases { own_name, others: BTreeMap::new() };
    peers.relist(&feed.initial);
    sink(&peers.addresses());
    let stop = tasks.token();
    while let Some(change) = stop.run_until_cancelled(feed.changes.next()).await {
        // Most Leases belong to other components, and most changes are only renewals.
        if peers.apply(&change.ok_or(PeersError::Closed)?) {
            sink(&peers.addresses());
        }
    }
    Ok(())
}

/// Leases of other servers, by name.
struct PeerLeases {
    own_name: String,
    others: BTreeMap<String, PeerAddress>,
}

impl PeerLeases {
    /// Applies a change. Returns true if the peers have changed.
    fn apply(&mut self, change: &Change) -> bool {
        match change {
            Change::Put(lease) => self.put(lease),
            Change::Deleted(lease) => {
                lease.namespace() == NAMESPACE && self.others.remove(lease.name()).is_some()
            }
            Change::Relisted(all, _) => {
                let before = std::mem::take(&mut self.others);
                self.relist(all);
                self.others != before
            }
        }
    }

    fn relist(&mut self, all: &[StoredObject]) {
        for lease in all {
            self.put(lease);
        }
    }

    fn put(&mut self, lease: &StoredObject) -> bool {
        let object = lease.object();
        let is_server = lease.namespace() == NAMESPACE && object.label(IDENTITY_LABEL) == Some(COMPONENT);
        if !is_server || lease.name() == self.own_name {
            return false;
        }
        let holder = object.at(&["spec", "holderIdentity"]).str();
        let address = object.at(&["metadata", "annotations", ADDRESS_ANNOTATION]).str();
        let Some(peer) = PeerAddress::new(lease.name(), holder, address) else {
            tracing::debug!(
                lease = lease.name(),
                holder,
                address,
                "identity lease without a usable address, lease skipped"
            );
            return self.others.remove(lease.name()).is_some();
        };
        let before = self.others.insert(lease.name().to_owned(), peer);
        before.as_ref() != self.others.get(lease.name())
    }

    fn addresses(&self) -> PeerAddresses {
        PeerAddresses { own_name: self.own_name.clone(), peers: self.others.values().cloned().collect() }
    }
}
