//! Removal of expired objects: all that were last written before a given time, regardless of finalizers.
//!
//! Equivalent to upstream's etcd leases on keys: no finalizers, no grace period, one DELETED event.

use futures::future::join_all;
use portico_store::{Key, ListAt, Record, Resource, Scope, StoreError, Txn, TxnError};

use crate::failure;
use crate::registry::Registry;
use crate::{Result, stored};

/// Number of objects that are read and removed at a time.
const PAGE: usize = 500;

impl Registry {
    /// Removes the objects of expiring kinds that were last written before this time (Unix seconds). Returns their number.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read or written.
    pub async fn expire(&self, before: i64) -> Result<usize> {
        let store = self.store();
        let last = store.revision_at(before).await.map_err(|error| failure::of_read(error, 0))?;
        let mut gone = 0;
        if last > 0 {
            for resource in self.expiring() {
                gone += self.expire_resource(&resource, last).await?;
            }
        }
        Ok(gone)
    }

    async fn expire_resource(&self, resource: &Resource, last: i64) -> Result<usize> {
        let (mut gone, mut after) = (0, None);
        loop {
            let page = self.store().list_at(ListAt {
                scope: Scope::all(resource),
                revision: self.store().revision(),
                after: after.take(),
                limit: Some(PAGE),
                counted: false,
            });
            let page = match page.await {
                Ok(page) => page,
                // A concurrent compaction: retry with a newer revision.
                Err(StoreError::Compacted { .. }) => continue,
                Err(error) => return Err(failure::of_read(error, 0)),
            };
            let old = page.records.iter().filter(|record| record.revision <= last);
            for removed in join_all(old.map(|record| self.remove_expired(record))).await {
                gone += usize::from(removed?);
            }
            match page.records.last().filter(|_| page.remaining > 0) {
                Some(record) => after = Some(record.key.path().to_owned()),
                None => return Ok(gone),
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
            Some(Err(error)) => {
                Err(failure::of_txn(error, record.key.resource(), stored::decode(record).name()))
            }
        }
    }
}
