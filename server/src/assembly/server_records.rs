//! Records by which the control services of a store exchange information, one for each control service.
//!
//! Each control service renews its record. A record that was not renewed within its lifetime, by the local clock of another
//! control service, is removed by that control service. The records are not served over the API.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use portico_machinery::{GroupResource, GroupVersion, Object, time};
use portico_store::{Change, Key, Precondition, Resource, Snapshot, Store, Txn, TxnError, Value};
use tokio::time::Instant;

/// Lifetime of a record after its last renewal (upstream's `master-lease` of 15 s).
const LIFETIME: Duration = Duration::from_secs(15);
/// Interval of renewals, and of checks of other records (upstream's `reconcileInterval`).
pub(super) const RENEW_INTERVAL: Duration = Duration::from_secs(10);

/// Records of one resource. Cheap to clone.
#[derive(Clone)]
pub(super) struct ServerRecords {
    store: Arc<dyn Store>,
    resource: Resource,
    kind: &'static str,
}

/// Last seen revisions of other records, and the times at which they were first seen.
pub(super) type Renewals = HashMap<Key, (i64, Instant)>;

impl ServerRecords {
    pub(super) fn new(store: &Arc<dyn Store>, resource: GroupResource, kind: &'static str) -> Self {
        let resource = Resource::from(resource);
        // Records are read without waiting.
        store.pin(&resource);
        Self { store: Arc::clone(store), resource, kind }
    }

    /// Returns all records, as far as this process has read them; `None` if they are not in memory yet.
    pub(super) fn cached(&self) -> Option<Snapshot> {
        self.store.cached_snapshot(&self.resource)
    }

    /// Writes a record with further fields of its spec. Returns true on success.
    pub(super) async fn renew(&self, name: &str, fields: impl FnOnce(&mut Object)) -> bool {
        let key = self.key(name);
        let write = async {
            let value = self.value(&key, fields)?;
            self.write(Txn::single(key.clone(), Precondition::Any, Change::Put(value))).await
        };
        log_failure(write.await)
    }

    /// Removes a record of this control service, so that others need not wait until it expires.
    pub(super) async fn release(&self, name: &str) {
        log_failure(self.remove(&self.key(name), Precondition::Any).await);
    }

    /// Removes expired records of other control services.
    pub(super) async fn remove_expired(&self, own_name: Option<&str>, renewals: &mut Renewals) {
        let snapshot = match self.store.snapshot(&self.resource).await {
            Ok(snapshot) => snapshot,
            Err(error) => {
                return tracing::debug!(%error, "cannot list the records of control services, retrying");
            }
        };
        renewals.retain(|key, _| snapshot.get(key).is_some());
        for record in snapshot.iter().filter(|record| own_name != Some(record.key.name())) {
            let (revision, since) =
                *renewals.entry(record.key.clone()).or_insert_with(|| (record.revision, Instant::now()));
            if revision != record.revision {
                renewals.insert(record.key.clone(), (record.revision, Instant::now()));
            } else if since.elapsed() > LIFETIME {
                let removed = self.remove(&record.key, Precondition::Revision(revision)).await;
                tracing::info!(name = record.key.name(), "control service record expired, removed");
                log_failure(removed);
            }
        }
    }

    fn key(&self, name: &str) -> Key {
        Key::new(&self.resource, "", name)
    }

    fn value(&self, key: &Key, fields: impl FnOnce(&mut Object)) -> Result<Value, TxnError> {
        let mut object = Object::new(&GroupVersion::new("portico.dev", "v1").kind(self.kind));
        object.set(&["metadata", "name"], key.name());
        object.set(&["spec", "renewTime"], time::rfc3339_micro(Timestamp::now()));
        fields(&mut object);
        Value::from_metadata(key.resource(), object.to_json()).map_err(|error| TxnError::Unavailable(error.0))
    }

    async fn remove(&self, key: &Key, expect: Precondition) -> Result<(), TxnError> {
        let last = self.value(key, |_| {})?;
        self.write(Txn::single(key.clone(), expect, Change::Delete(last))).await
    }

    async fn write(&self, txn: Txn) -> Result<(), TxnError> {
        match self.store.commit(vec![txn]).await.pop() {
            // The record was removed or renewed by another control service.
            Some(Err(TxnError::NotFound { .. } | TxnError::Conflict { .. })) | None => Ok(()),
            Some(result) => result.map(drop),
        }
    }
}

/// Logs a failure. Returns true on success.
fn log_failure(result: Result<(), TxnError>) -> bool {
    result
        .inspect_err(
            |error| tracing::debug!(%error, "cannot write the record of a control service, retrying"),
        )
        .is_ok()
}
