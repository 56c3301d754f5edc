//! Reads the current state of resources, and objects at an exact revision. `list` reads lists at an exact revision.
//!
//! Other processes compact history as well: after a read, the compaction point is queried on the same connection.

use std::sync::Arc;

use sqlx::Row;
use tokio::sync::{Notify, Semaphore};

use super::failure::store_error;
use super::latest_revision;
use super::open::{self, Meta};
use super::pool::{ConnectionPool, PooledConnection};
use super::row;
use crate::cache::{Cache, Slot};
use crate::current_state::{CurrentState, ObjectLookup};
use crate::decode::{DecodeError, Decoder};
use crate::error::StoreError;
use crate::hub::Hub;
use crate::index::Indexer;
use crate::key::Key;
use crate::latest_revision::LatestRevision;
use crate::loader::Loader;
use crate::metrics::Metrics;
use crate::record::Record;
use crate::seal::Seal;
use crate::snapshot::Snapshot;
use crate::store::Identity;
use crate::unreadable::Unreadable;

/// Maximum number of reads of an object whose history is compacted during the read.
const MAX_READS: u32 = 3;

/// Dependencies of reads, shared by the store and its subscriptions.
pub(super) struct Reader {
    pub(super) pool: Arc<ConnectionPool>,
    pub(super) identity: Identity,
    /// Wakes the writer to follow commits of other processes.
    pub(super) wake: Arc<Notify>,
    pub(super) indexer: Arc<dyn Indexer>,
    pub(super) seal: Arc<Seal>,
    pub(super) cache: Arc<Cache>,
    pub(super) hub: Arc<Hub>,
    pub(super) metrics: Metrics,
    pub(super) latest_revision: LatestRevision,
    /// One permit for each concurrent read of history.
    pub(super) history_permits: Semaphore,
}

impl Reader {
    /// Returns the decoder of values.
    pub(super) fn decoder(&self) -> Decoder<'_> {
        Decoder { indexer: &*self.indexer, seal: &self.seal, skips_unopened: false }
    }

    /// Returns the complete current state of a resource, with every commit acknowledged before the call.
    pub(super) async fn snapshot(&self, slot: &Slot) -> Result<Snapshot, StoreError> {
        self.latest_revision.wait_linearizable().await?;
        self.full_snapshot(slot).await
    }

    /// Returns the current state of a resource, with every commit acknowledged before the call.
    pub(super) async fn current_state(&self, slot: &Slot) -> Result<CurrentState, StoreError> {
        self.latest_revision.wait_linearizable().await?;
        self.ensure_loaded(slot).await?;
        let revision = self.hub.revision();
        Ok(slot.snapshot(revision).map_or(CurrentState::Uncached(revision), CurrentState::Cached))
    }

    /// Returns the current state of an object.
    pub(super) async fn find(&self, key: &Key) -> Result<ObjectLookup, StoreError> {
        self.latest_revision.wait_linearizable().await?;
        let slot = self.cache.slot(key.resource());
        self.ensure_loaded(&slot).await?;
        if let Some(snapshot) = slot.snapshot(self.hub.revision()) {
            return Ok(ObjectLookup::in_snapshot(&snapshot, key));
        }
        self.metrics.reads_past_cache.inc();
        let mut last = StoreError::Closed;
        for _ in 0..MAX_READS {
            let revision = self.hub.revision();
            match self.read_at(key, revision).await {
                Ok(object) => {
                    if let Some(Err(object)) = &object {
                        self.cache.note_unreadable(&slot, revision, std::slice::from_ref(object));
                    }
                    return Ok(ObjectLookup { revision, object });
                }
                Err(error @ StoreError::Compacted { .. }) => last = error,
                Err(error) => return Err(error),
            }
            // The published revision is before the compaction point.
            self.latest_revision.wait_linearizable_fresh().await?;
        }
        Err(last)
    }

    /// Reads `meta` after a read at a revision, on the same connection.
    async fn read_meta(
        &self,
        connection: &mut PooledConnection<'_>,
        revision: i64,
    ) -> Result<Meta, StoreError> {
        let meta = self.pool.with_timeout(open::meta(connection)).await.map_err(store_error)?;
        latest_revision::check_published(&meta, &self.identity, revision, &self.pool, &self.wake)?;
        self.hub.set_compacted(meta.compacted.min(self.hub.revision()));
        Ok(meta)
    }

    /// Checks after a read that its revision is not compacted. Releases the connection.
    pub(super) async fn finish_exact_read(
        &self,
        mut connection: PooledConnection<'_>,
        revision: i64,
    ) -> Result<(), StoreError> {
        let oldest = self.read_meta(&mut connection, revision).await?.compacted;
        connection.release().await.map_err(store_error)?;
        if oldest > revision { Err(StoreError::Compacted { oldest }) } else { Ok(()) }
    }

    /// Checks after a full read that no state that was current at its revision or later was deleted. Releases the connection.
    pub(super) async fn finish_full_read(
        &self,
        mut connection: PooledConnection<'_>,
        revision: i64,
    ) -> Result<(), StoreError> {
        let meta = self.read_meta(&mut connection, revision).await?;
        connection.release().await.map_err(store_error)?;
        if meta.gc_revision > revision {
            Err(StoreError::Compacted { oldest: meta.compacted })
        } else {
            Ok(())
        }
    }

    pub(super) async fn get_at(&self, key: &Key, revision: i64) -> Result<Option<Arc<Record>>, StoreError> {
        self.hub.check_readable(revision)?;
        match self.read_at(key, revision).await? {
            Some(Ok(record)) => Ok(Some(record)),
            Some(Err(object)) => Err(StoreError::corrupt(&object)),
            None => Ok(None),
        }
    }

    /// Reads an object at a revision.
    async fn read_at(
        &self,
        key: &Key,
        revision: i64,
    ) -> Result<Option<Result<Arc<Record>, Unreadable>>, StoreError> {
        const SELECT: &str = "SELECT revision, value, deleted, uid, checksum FROM log WHERE resource = $1 AND namespace = $2 \
            AND name = $3 AND revision <= $4 ORDER BY revision DESC LIMIT 1";
        let (namespace, name) = row::columns(key.path());
        let select = sqlx::query(SELECT).bind(key.resource().to_string()).bind(namespace).bind(name);
        let mut connection = self.pool.acquire().await.map_err(store_error)?;
        let found = self.pool.with_timeout(select.bind(revision).fetch_optional(&mut *connection));
        let row = found.await.map_err(store_error)?;
        self.finish_exact_read(connection, revision).await?;
        let Some(row) = row.filter(|row| !row.get::<bool, _>(2)) else { return Ok(None) };
        let (revision, value) = (row.try_get(0).map_err(store_error)?, row.try_get(1).map_err(store_error)?);
        let uid: &str = row.try_get(3).map_err(store_error)?;
        let checksum = row.try_get("checksum").map_err(store_error)?;
        let decoded =
            self.decoder().decode(key.clone(), revision, value, checksum).await.map_err(decode_error)?;
        Ok(Some(decoded.map(Arc::new).map_err(|object| object.with_uid(&row::from_column(uid)))))
    }
}

/// Converts the error of a value that cannot be decoded.
pub(super) fn decode_error(error: DecodeError) -> StoreError {
    match error {
        DecodeError::Database(error) => store_error(error),
        DecodeError::Sealed { key, reason } => StoreError::Sealed { key, reason },
    }
}
