//! Addresses of the facades of all control services of one store (upstream's `masterleases`). All control services see the same
//! records at the same revision, so that they do not overwrite each other's results.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use portico_machinery::GroupResource;
use portico_store::Store;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::server_records::{PERIOD, ServerRecords};

/// Records with the addresses of facades. Cheap to clone.
#[derive(Clone)]
pub(super) struct MasterLeases {
    records: ServerRecords,
    own: watch::Receiver<Option<SocketAddr>>,
}

/// Returns the resource of the records.
pub(super) fn resource() -> GroupResource {
    GroupResource::new("portico.dev", "masterleases")
}

impl MasterLeases {
    /// Uses the records of a store; `own` is the address of this control service's facade, once it is known.
    pub(super) fn new(store: &Arc<dyn Store>, own: watch::Receiver<Option<SocketAddr>>) -> Self {
        Self { records: ServerRecords::new(store, resource(), "MasterLease"), own }
    }

    /// Returns the addresses of all facades, as far as this process has read them.
    pub(super) fn addresses(&self) -> BTreeSet<SocketAddr> {
        let snapshot = self.records.seen();
        let records = snapshot.iter().flat_map(|snapshot| snapshot.iter());
        records.filter_map(|record| record.key.name().parse().ok()).collect()
    }

    /// Renews the own record and removes expired ones of other control services, until the future is dropped. Calls `changed`
    /// when the own address has changed.
    pub(super) async fn run(mut self, changed: impl Fn()) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut known, mut renewals) = (None, HashMap::new());
        loop {
            let moved = tokio::select! {
                _ = ticks.tick() => false,
                moved = self.own.changed() => match moved {
                    Ok(()) => true,
                    Err(_) => return,
                },
            };
            let own = *self.own.borrow_and_update();
            if let (true, Some(before)) = (known != own, known) {
                self.records.release(&before.to_string()).await;
            }
            known = own;
            let own = own.map(|own| own.to_string());
            if let Some(own) = &own {
                self.records.renew(own, |_| {}).await;
            }
            self.records.remove_expired(own.as_deref(), &mut renewals).await;
            if moved {
                changed();
            }
        }
    }

    /// Removes the own record.
    pub(super) async fn release(&self) {
        let own = *self.own.borrow();
        if let Some(own) = own {
            self.records.release(&own.to_string()).await;
        }
    }
}
