//! Reads states of resources, current or at an exact revision.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::client::Client;
use super::failure::EtcdFailure;
use super::keys::EtcdKeys;
use super::open;
use super::owner_index::OwnerIndex;
use super::pages::Pages;
use super::values::ValueCodec;
use super::wire::RangeRequest;
use crate::cache::{Cache, Slot, SnapshotBuilder};
use crate::error::StoreError;
use crate::exact_read;
use crate::hub::Hub;
use crate::key::Key;
use crate::latest_revision::LatestRevision;
use crate::loader::Loader;
use crate::metrics::Metrics;
use crate::record::Record;
use crate::snapshot::Snapshot;
use crate::store::{ListAt, Page};

/// Dependencies of reads.
pub(super) struct Reader {
    pub(super) client: Client,
    pub(super) keys: EtcdKeys,
    pub(super) values: ValueCodec,
    pub(super) cache: Arc<Cache>,
    pub(super) hub: Arc<Hub>,
    pub(super) metrics: Metrics,
    pub(super) latest_revision: LatestRevision,
    pub(super) owner_index: Arc<OwnerIndex>,
    pub(super) root: String,
    /// Limits the number of watches that read history concurrently.
    pub(super) history_permits: Semaphore,
}

impl Reader {
    /// Returns the current state of a resource, with every commit acknowledged before the call.
    pub(super) async fn snapshot(&self, slot: &Slot) -> Result<Snapshot, StoreError> {
        self.latest_revision.wait_linearizable().await?;
        self.full_snapshot(slot).await
    }

    /// Converts the failure of a read. For a compacted revision, queries the compaction point.
    pub(super) async fn read_error(&self, failure: EtcdFailure) -> StoreError {
        if !failure.is_compacted() {
            return failure.into_store_error();
        }
        match self.note_compacted().await {
            Ok(oldest) => StoreError::Compacted { oldest },
            Err(failure) => failure.into_store_error(),
        }
    }

    /// Queries and records the compaction point of etcd.
    pub(super) async fn note_compacted(&self) -> Result<i64, EtcdFailure> {
        let compacted = open::compacted(&self.client, &self.root).await?;
        self.hub.compact_reads(compacted);
        self.metrics.compacted.set(compacted);
        Ok(compacted)
    }

    /// Answers an exact read: from memory if nothing has changed since, otherwise from etcd.
    pub(super) async fn list_at(&self, query: ListAt) -> Result<Page, StoreError> {
        let slot = self.cache.slot(&query.scope.resource);
        if let Some(page) = exact_read::page_from_memory(&self.hub, &slot, &query)? {
            return Ok(page);
        }
        match self.list_from_etcd(&query).await {
            Ok(page) => Ok(page),
            Err(failure) => Err(self.read_error(failure).await),
        }
    }

    async fn list_from_etcd(&self, query: &ListAt) -> Result<Page, EtcdFailure> {
        let namespace = query.scope.namespace.as_deref();
        let range = self.keys.range(&query.scope.resource, namespace, query.after.as_deref());
        let mut page = Page::default();
        if range.0 >= range.1 {
            return Ok(page);
        }
        let mut pages = Pages::new(&self.client, range, query.revision);
        loop {
            // Unreadable objects do not count against the limit of the page.
            let remaining_limit = query.limit.map(|limit| limit - page.records.len());
            if remaining_limit == Some(0) {
                break;
            }
            let Some(found) = pages.next(remaining_limit).await? else { break };
            for found in &found {
                let Some(key) = self.keys.parse(&found.key) else { continue };
                match self.values.decode(key, found).await? {
                    Ok(record) => page.records.push(Arc::new(record)),
                    Err(object) => page.unreadable.push(object),
                }
            }
        }
        page.remaining = u64::try_from(pages.remaining).unwrap_or(0);
        Ok(page)
    }

    pub(super) async fn get_at(&self, key: &Key, revision: i64) -> Result<Option<Arc<Record>>, StoreError> {
        self.hub.check_readable(revision)?;
        let etcd_key = self.keys.object_key(key).into_bytes();
        let request = RangeRequest { key: etcd_key, revision, ..RangeRequest::default() };
        let found = match self.client.range(request).await {
            Ok(response) => response.kvs.into_iter().next(),
            Err(failure) => return Err(self.read_error(failure).await),
        };
        let Some(found) = found else { return Ok(None) };
        let record = self.values.decode(key.clone(), &found).await.map_err(EtcdFailure::into_store_error)?;
        Ok(Some(Arc::new(record.map_err(|object| StoreError::corrupt(&object))?)))
    }

    /// Reads the state of a resource at a revision.
    async fn read_objects(
        &self,
        slot: &Slot,
        revision: i64,
        builder: &mut SnapshotBuilder,
    ) -> Result<(), EtcdFailure> {
        let range = self.keys.range(&slot.resource, None, None);
        let mut pages = Pages::new(&self.client, range, revision);
        while let Some(found) = pages.next(None).await? {
            for found in &found {
                let Some(key) = self.keys.parse(&found.key) else { continue };
                let read = self.values.decode(key, found).await?;
                if let Err(object) = &read {
                    tracing::error!(
                        object = %object.key(),
                        revision = object.revision(),
                        error = object.reason(),
                        "cannot read a stored object, omitted from lists"
                    );
                }
                // The budget is unlimited.
                let _is_accepted = builder.push(read);
            }
        }
        Ok(())
    }
}

impl Loader for Reader {
    fn cache(&self) -> &Cache {
        &self.cache
    }

    fn hub(&self) -> &Hub {
        &self.hub
    }

    fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn full_read_permits(&self) -> &Semaphore {
        &self.history_permits
    }

    async fn read_state(
        &self,
        slot: &Slot,
        revision: i64,
        builder: &mut SnapshotBuilder,
    ) -> Result<bool, StoreError> {
        match self.read_objects(slot, revision, builder).await {
            Ok(()) => Ok(true),
            Err(failure) => Err(self.read_error(failure).await),
        }
    }
}
