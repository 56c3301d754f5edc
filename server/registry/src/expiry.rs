//! Removal of expired objects: all that were last written before a given time, regardless of finalizers.
//!
//! Equivalent to upstream's etcd leases on keys: no finalizers, no grace period, one DELETED event.

use futures::future::join_all;
use portico_store::{Key, ListAt, Record, Resource, Scope, StoreError, Txn, TxnError};

use crate::failure;
use crate::registry::Registry;
use crate::{Result, stored_object};

/// Number of objects that are read and removed at a time.
const PAGE: usize = 500;

impl Registry {
    /// Removes the objects of expiring kinds that were last written before this time (Unix seconds). Returns their number.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read or written.
    pub async fn expire(&self, before: i64) -> Result<usize> {
        let store = self.store();
        let last_revision =
            store.revision_at(before).await.map_err(|error| failure::from_store_error(error, 0))?;
        let mut removed_count = 0;
        if last_revision > 0 {
            for resource in self.expiring() {
                removed_count += self.expire_resource(&resource, last_revision).await?;
            }
        }
        Ok(removed_count)
    }

    async fn expire_resource(&self, resource: &Resource, last_revision: i64) -> Result<usize> {
        let (mut removed_count, mut after) = (0, None);
        loop {
            let page = self.store().list_at(ListAt {
                scope: Scope::all(resource),
                revision: self.store().revision(),
                after: after.take(),
                limit: Some(PAGE),
                exact_count: false,
            });
            let page = match page.await {
                Ok(page) => page,
                // A concurrent compaction: retry with a newer revision.
                Err(StoreError::Compacted { .. }) => continue,
                Err(error) => return Err(failure::from_store_error(error, 0)),
            };
            let old = page.records.iter().filter(|record| record.revision <= last_revision);
            for removed in join_all(old.map(|record| self.remove_expired(record))).await {
                removed_count += usize::from(removed?);
            }
            match page.records.last().filter(|_| page.remaining > 0) {
                Some(record) => after = Some(record.key.path().to_owned()),
                None => return Ok(removed_count),
            }
        }
    }

    /// Removes a record unless it was written again. Returns true if it was removed.
    async fn remove_expired(&self, record: &Record) -> Result<bool> {
        let key: Key = record.key.clone();
        let txn = Txn::delete(key, record.revision, record.value.clone());
        match self.store().commit(vec![txn]).await.pop() {
            Some(Ok(_)) => Ok(true),
            None | Some(Err(TxnError::Conflict { .. } | TxnError::NotFound { .. })) => Ok(false),
            Some(Err(error)) => Err(failure::from_txn_error(
                error,
                record.key.resource(),
                stored_object::decode(record).name(),
            )),
        }
    }
}
