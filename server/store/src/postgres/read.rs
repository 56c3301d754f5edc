//! Reads the current state of resources, and objects at an exact revision. `list` reads lists at an exact revision.
//!
//! Other processes compact history as well: after a read, the compaction point is queried on the same connection.

use std::sync::Arc;

use sqlx::Row;
use tokio::sync::{Notify, Semaphore};

use super::failure::failed;
use super::latest;
use super::open::{self, Meta};
use super::pool::{Connections, Lent};
use super::row;
use crate::cache::{Cache, Slot};
use crate::current::{Found, State};
use crate::decode::{DecodeError, Decoder};
use crate::error::StoreError;
use crate::hub::Hub;
use crate::index::Indexer;
use crate::key::Key;
use crate::latest::Latest;
use crate::load::Load;
use crate::metrics::Metrics;
use crate::record::Record;
use crate::seal::Seal;
use crate::snapshot::Snapshot;
use crate::store::Identity;
use crate::unreadable::Unreadable;

/// Maximum number of reads of an object whose history is compacted during the read.
const READS: u32 = 3;

/// Dependencies of reads, shared by the store and its subscriptions.
pub(super) struct Reader {
    pub(super) pool: Arc<Connections>,
    pub(super) identity: Identity,
    /// Wakes the writer to follow commits of other processes.
    pub(super) wake: Arc<Notify>,
    pub(super) indexer: Arc<dyn Indexer>,
    pub(super) seal: Arc<Seal>,
    pub(super) cache: Arc<Cache>,
    pub(super) hub: Arc<Hub>,
    pub(super) metrics: Metrics,
    pub(super) latest: Latest,
    /// One permit for each concurrent read of history.
    pub(super) resumes: Semaphore,
}

impl Reader {
    /// Returns the decoder of values.
    pub(super) fn decoder(&self) -> Decoder<'_> {
        Decoder { indexer: &*self.indexer, seal: &self.seal, skips_unopened: false }
    }

    /// Returns the complete current state of a resource, with every commit acknowledged before the call.
    pub(super) async fn snapshot(&self, slot: &Slot) -> Result<Snapshot, StoreError> {
        self.latest.reach().await?;
        self.whole(slot).await
    }

    /// Returns the current state of a resource, with every commit acknowledged before the call.
    pub(super) async fn current(&self, slot: &Slot) -> Result<State, StoreError> {
        self.latest.reach().await?;
        self.ensure_loaded(slot).await?;
        let revision = self.hub.revision();
        Ok(slot.snapshot(revision).map_or(State::Stored(revision), State::Held))
    }

    /// Returns the current state of an object.
    pub(super) async fn find(&self, key: &Key) -> Result<Found, StoreError> {
        self.latest.reach().await?;
        let slot = self.cache.slot(key.resource());
        self.ensure_loaded(&slot).await?;
        if let Some(snapshot) = slot.snapshot(self.hub.revision()) {
            return Ok(Found::in_snapshot(&snapshot, key));
        }
        self.metrics.reads_past_cache.inc();
        let mut last = StoreError::Closed;
        for _ in 0..READS {
            let revision = self.hub.revision();
            match self.read_at(key, revision).await {
                Ok(object) => {
                    if let Some(Err(object)) = &object {
                        self.cache.note_unreadable(&slot, revision, std::slice::from_ref(object));
                    }
                    return Ok(Found { revision, object });
                }
                Err(error @ StoreError::Compacted { .. }) => last = error,
                Err(error) => return Err(error),
            }
            // The published revision is before the compaction point.
            self.latest.reach_again().await?;
        }
        Err(last)
    }

    /// Reads `meta` after a read at a revision, on the same connection.
    async fn look(&self, lent: &mut Lent<'_>, revision: i64) -> Result<Meta, StoreError> {
        let meta = self.pool.in_time(open::meta(lent)).await.map_err(failed)?;
        latest::check(&meta, &self.identity, revision, &self.pool, &self.wake)?;
        self.hub.set_compacted(meta.compacted.min(self.hub.revision()));
        Ok(meta)
    }

    /// Checks after a read that its revision is not compacted. Releases the connection.
    pub(super) async fn end_exact(&self, mut lent: Lent<'_>, revision: i64) -> Result<(), StoreError> {
        let oldest = self.look(&mut lent, revision).await?.compacted;
        lent.give_back().await.map_err(failed)?;
        if oldest > revision { Err(StoreError::Compacted { oldest }) } else { Ok(()) }
    }

    /// Checks after a full read that no state that was current at its revision or later was deleted. Releases the connection.
    pub(super) async fn end_whole(&self, mut lent: Lent<'_>, revision: i64) -> Result<(), StoreError> {
        let meta = self.look(&mut lent, revision).await?;
        lent.give_back().await.map_err(failed)?;
        if meta.swept > revision { Err(StoreError::Compacted { oldest: meta.compacted }) } else { Ok(()) }
    }

    pub(super) async fn get_at(&self, key: &Key, revision: i64) -> Result<Option<Arc<Record>>, StoreError> {
        self.hub.check(revision)?;
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
        let mut lent = self.pool.take().await.map_err(failed)?;
        let found = self.pool.in_time(select.bind(revision).fetch_optional(&mut *lent));
        let row = found.await.map_err(failed)?;
        self.end_exact(lent, revision).await?;
        let Some(row) = row.filter(|row| !row.get::<bool, _>(2)) else { return Ok(None) };
        let (revision, value) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
        let uid: &str = row.try_get(3).map_err(failed)?;
        let checksum = row.try_get("checksum").map_err(failed)?;
        let decoded =
            self.decoder().value(key.clone(), revision, value, checksum).await.map_err(undecoded)?;
        Ok(Some(decoded.map(Arc::new).map_err(|object| object.with_uid(&row::from_column(uid)))))
    }
}

/// Converts the error of a value that cannot be decoded.
pub(super) fn undecoded(error: DecodeError) -> StoreError {
    match error {
        DecodeError::Database(error) => failed(error),
        DecodeError::Sealed { key, reason } => StoreError::Sealed { key, reason },
    }
}
