//! Which control services of one store are there, and where their facades are reached (upstream's `masterleases`).
//!
//! Each keeps a record of its address and renews it. Whoever finds that another one has not been renewed for longer than it lasts, by
//! its own clock, removes it: so that all see the same ones at the same revision, and none writes over what another one wrote.
//! The records are no objects of the API: nobody is served them.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use portico_machinery::{GroupResource, GroupVersion, Object, time};
use portico_store::{Change, Expect, Key, Resource, Store, Txn, TxnError, Value};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How long a record counts after its last renewal (upstream's `master-lease` of 15 s).
const LASTS: Duration = Duration::from_secs(15);
/// How often it is renewed, and others' are looked at (upstream's `reconcileInterval`).
const PERIOD: Duration = Duration::from_secs(10);

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(super) struct MasterLeases {
    store: Arc<dyn Store>,
    own: watch::Receiver<Option<SocketAddr>>,
}

/// The resource of the records.
pub(super) fn resource() -> GroupResource {
    GroupResource::new("portico.dev", "masterleases")
}

impl MasterLeases {
    /// Of this store; `own` is where the facade of this control service is reached, once that is known.
    pub(super) fn new(store: &Arc<dyn Store>, own: watch::Receiver<Option<SocketAddr>>) -> Self {
        // They are looked for without waiting.
        store.keep(&Resource::from(resource()));
        Self { store: Arc::clone(store), own }
    }

    /// Where all of them are reached, as far as this process has seen.
    pub(super) fn addresses(&self) -> BTreeSet<SocketAddr> {
        let snapshot = self.store.cached(&Resource::from(resource()));
        let records = snapshot.iter().flat_map(|snapshot| snapshot.iter());
        records.filter_map(|record| record.key.name().parse().ok()).collect()
    }

    /// Keeps the own record, and removes those of others that are gone, until it is dropped; `changed` is called when the own
    /// address has changed.
    pub(super) async fn run(mut self, changed: impl Fn()) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut known, mut seen) = (None, HashMap::new());
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
                self.logged(self.remove(&key(before), Expect::Any).await);
            }
            known = own;
            if let Some(own) = own {
                self.logged(self.renew(own).await);
            }
            self.remove_expired(own, &mut seen).await;
            if moved {
                changed();
            }
        }
    }

    /// Takes the own record back: others need not wait until it has expired.
    pub(super) async fn release(&self) {
        let own = *self.own.borrow();
        if let Some(own) = own {
            self.logged(self.remove(&key(own), Expect::Any).await);
        }
    }

    async fn renew(&self, own: SocketAddr) -> Result<(), TxnError> {
        let key = key(own);
        self.write(Txn::one(key.clone(), Expect::Any, Change::Put(record(&key, Timestamp::now())?))).await
    }

    async fn remove_expired(&self, own: Option<SocketAddr>, seen: &mut HashMap<Key, (i64, Instant)>) {
        let snapshot = match self.store.snapshot(&Resource::from(resource())).await {
            Ok(snapshot) => snapshot,
            Err(error) => return tracing::debug!(%error, "other control services are looked for later"),
        };
        seen.retain(|key, _| snapshot.get(key).is_some());
        for record in snapshot.iter().filter(|record| own.is_none_or(|own| record.key != key(own))) {
            let (revision, since) =
                *seen.entry(record.key.clone()).or_insert_with(|| (record.revision, Instant::now()));
            if revision != record.revision {
                seen.insert(record.key.clone(), (record.revision, Instant::now()));
            } else if since.elapsed() > LASTS {
                let removed = self.remove(&record.key, Expect::Revision(revision)).await;
                tracing::info!(address = record.key.name(), "a control service is gone");
                self.logged(removed);
            }
        }
    }

    async fn remove(&self, key: &Key, expect: Expect) -> Result<(), TxnError> {
        let last = record(key, Timestamp::now())?;
        self.write(Txn::one(key.clone(), expect, Change::Delete(last))).await
    }

    async fn write(&self, txn: Txn) -> Result<(), TxnError> {
        match self.store.commit(vec![txn]).await.pop() {
            // Somebody else has removed it, or it was renewed after all.
            Some(Err(TxnError::NotFound { .. } | TxnError::Conflict { .. })) | None => Ok(()),
            Some(written) => written.map(drop),
        }
    }

    fn logged(&self, done: Result<(), TxnError>) {
        if let Err(error) = done {
            tracing::debug!(%error, "the record of a control service is not written; tried again");
        }
    }
}

fn key(address: SocketAddr) -> Key {
    Key::new(&Resource::from(resource()), "", &address.to_string())
}

fn record(key: &Key, now: Timestamp) -> Result<Value, TxnError> {
    let mut object = Object::new(&GroupVersion::new("portico.dev", "v1").kind("MasterLease"));
    object.set(&["metadata", "name"], key.name());
    object.set(&["spec", "renewTime"], time::rfc3339_micro(now));
    Value::of_metadata(key.resource(), object.to_json()).map_err(|error| TxnError::Unavailable(error.0))
}
