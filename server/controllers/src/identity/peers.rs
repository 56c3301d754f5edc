//! Follows the identity Leases of other servers behind the same address and hands on where those are reached.
//!
//! Upstream keeps addresses beside the Leases, in etcd alone; since 1.36 they stand in an annotation, too. It must not know who
//! sends requests there.

use std::collections::BTreeMap;

use futures::StreamExt;
use portico_kit::tasks::TaskSet;
use portico_machinery::Status;
use portico_machinery::peer_addresses::{PeerAddress, PeerAddresses};
use portico_registry::{Change, Registry, Stored};

use super::{ADDRESS_ANNOTATION, COMPONENT, IDENTITY_LABEL, NAMESPACE, leases};

/// Why peers can no longer be followed.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    /// Leases cannot be.
    #[error("cannot follow identity leases: {0}")]
    Follow(Box<Status>),
    /// The store closed.
    #[error("the store has closed")]
    Closed,
}

/// Hands all peers of the server with this identity to `sink` whenever they change, until `tasks` is cancelled.
///
/// # Errors
/// [`PeersError`]
pub async fn run(
    registry: Registry,
    own_name: String,
    tasks: TaskSet,
    sink: impl Fn(&PeerAddresses) + Send + Sync + 'static,
) -> Result<(), PeersError> {
    let mut followed = registry.follow(&leases()).await.map_err(PeersError::Follow)?;
    let mut peers = Peers { own_name, others: BTreeMap::new() };
    peers.relist(&followed.initial);
    let mut shown = peers.addresses();
    sink(&shown);
    let stop = tasks.token();
    while let Some(change) = stop.run_until_cancelled(followed.changes.next()).await {
        peers.take(&change.ok_or(PeersError::Closed)?);
        let now = peers.addresses();
        if now != shown {
            sink(&now);
            shown = now;
        }
    }
    Ok(())
}

/// The Leases of other servers, by name.
struct Peers {
    own_name: String,
    others: BTreeMap<String, PeerAddress>,
}

impl Peers {
    fn take(&mut self, change: &Change) {
        match change {
            Change::Put(lease) => self.put(lease),
            Change::Deleted(lease) if lease.namespace() == NAMESPACE => {
                drop(self.others.remove(lease.name()))
            }
            Change::Deleted(_) => {}
            Change::Relisted(all, _) => {
                self.others.clear();
                self.relist(all);
            }
        }
    }

    fn relist(&mut self, all: &[Stored]) {
        all.iter().for_each(|lease| self.put(lease));
    }

    fn put(&mut self, lease: &Stored) {
        let object = lease.object();
        let is_server = lease.namespace() == NAMESPACE && object.label(IDENTITY_LABEL) == Some(COMPONENT);
        if !is_server || lease.name() == self.own_name {
            return;
        }
        let holder = object.at(&["spec", "holderIdentity"]).str();
        let address = object.at(&["metadata", "annotations", ADDRESS_ANNOTATION]).str();
        match PeerAddress::new(lease.name(), holder, address) {
            Some(peer) => drop(self.others.insert(lease.name().to_owned(), peer)),
            None => {
                tracing::debug!(lease = lease.name(), holder, address, "no peer is reached by the lease");
                self.others.remove(lease.name());
            }
        }
    }

    fn addresses(&self) -> PeerAddresses {
        PeerAddresses { own_name: self.own_name.clone(), others: self.others.values().cloned().collect() }
    }
}
