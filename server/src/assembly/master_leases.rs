//! Addresses of the facades of all control services of one store (upstream's `masterleases`): all see the same records at the same
//! revision, so that none overwrites another one's result.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use portico_machinery::GroupResource;
use portico_store::Store;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::server_records::{PERIOD, ServerRecords};

/// Addresses of the facades of control services. Cheap to clone.
#[derive(Clone)]
pub(super) struct MasterLeases {
    records: ServerRecords,
    own: watch::Receiver<Option<SocketAddr>>,
}

/// The resource of the records.
pub(super) fn resource() -> GroupResource {
    GroupResource::new("portico.dev", "masterleases")
}

impl MasterLeases {
    /// Of this store; `own` is where the facade of this control service is reached, once that is known.
    pub(super) fn new(store: &Arc<dyn Store>, own: watch::Receiver<Option<SocketAddr>>) -> Self {
        Self { records: ServerRecords::new(store, resource(), "MasterLease"), own }
    }

    /// Where all of them are reached, as far as this process has seen.
    pub(super) fn addresses(&self) -> BTreeSet<SocketAddr> {
        let snapshot = self.records.seen();
        let records = snapshot.iter().flat_map(|snapshot| snapshot.iter());
        records.filter_map(|record| record.key.name().parse().ok()).collect()
    }

    /// Keeps the own record, and removes those of others that are gone, until it is dropped; `changed` is called when the own
    /// address has changed.
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
