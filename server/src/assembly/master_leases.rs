//! Addresses of the facades of all control services of one store (upstream's `masterleases`). All control services see the same
//! records at the same revision, so that they do not overwrite each other's results.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use portico_machinery::GroupResource;
use portico_store::Store;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::server_records::{RENEW_INTERVAL, ServerRecords};

/// Records with the addresses of facades. Cheap to clone.
#[derive(Clone)]
pub(super) struct MasterLeases {
    records: ServerRecords,
    own_address: watch::Receiver<Option<SocketAddr>>,
}

/// Returns the resource of the records.
pub(super) fn resource() -> GroupResource {
    GroupResource::new("portico.dev", "masterleases")
}

impl MasterLeases {
    /// Uses the records of a store; `own_address` is the address of this control service's facade, once it is known.
    pub(super) fn new(store: &Arc<dyn Store>, own_address: watch::Receiver<Option<SocketAddr>>) -> Self {
        Self { records: ServerRecords::new(store, resource(), "MasterLease"), own_address }
    }

    /// Returns the addresses of all facades, as far as this process has read them.
    pub(super) fn addresses(&self) -> BTreeSet<SocketAddr> {
        let snapshot = self.records.cached();
        let records = snapshot.iter().flat_map(|snapshot| snapshot.iter());
        records.filter_map(|record| record.key.name().parse().ok()).collect()
    }

    /// Renews the own record and removes expired ones of other control services, until the future is dropped. Calls `changed`
    /// when the own address has changed.
    pub(super) async fn run(mut self, changed: impl Fn()) {
        let mut ticks = interval(RENEW_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut published, mut renewals) = (None, HashMap::new());
        loop {
            let has_moved = tokio::select! {
                _ = ticks.tick() => false,
                change = self.own_address.changed() => match change {
                    Ok(()) => true,
                    Err(_) => return,
                },
            };
            let address = *self.own_address.borrow_and_update();
            if let (true, Some(before)) = (published != address, published) {
                self.records.release(&before.to_string()).await;
            }
            published = address;
            let address_text = address.map(|address| address.to_string());
            if let Some(address_text) = &address_text {
                self.records.renew(address_text, |_| {}).await;
            }
            self.records.remove_expired(address_text.as_deref(), &mut renewals).await;
            if has_moved {
                changed();
            }
        }
    }

    /// Removes the own record.
    pub(super) async fn release(&self) {
        let address = *self.own_address.borrow();
        if let Some(address) = address {
            self.records.release(&address.to_string()).await;
        }
    }
}
