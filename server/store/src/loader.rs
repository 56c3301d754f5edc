//! Reads complete resources: into the cache if they fit, or for one caller. Engines implement the reads.

use tokio::sync::Semaphore;

use crate::cache::{Cache, Slot, SnapshotBuilder};
use crate::error::StoreError;
use crate::hub::Hub;
use crate::metrics::Metrics;
use crate::snapshot::Snapshot;
use crate::txn::Txn;

/// Maximum number of reads of a resource whose revision is compacted during the read.
const MAX_READS: u32 = 5;

/// Engine that reads complete resources.
pub(crate) trait Loader: Send + Sync {
    /// Returns the cache to load into.
    fn cache(&self) -> &Cache;

    fn hub(&self) -> &Hub;

    fn metrics(&self) -> &Metrics;

    /// Returns the permits that limit concurrent reads of complete resources for single callers.
    fn full_read_permits(&self) -> &Semaphore;

    /// Returns the reason if the database cannot store the values of a Txn. Only this Txn of a request is then rejected.
    fn rejection_reason(&self, _: &Txn) -> Option<String> {
        None
    }

    /// Estimates the memory in bytes that the objects of a resource would use. The estimate stops at the first object that
    /// exceeds `max_bytes`. Called only if the cache has a size limit.
    fn estimate_bytes(
        &self,
        _: &Slot,
        _max_bytes: i64,
    ) -> impl Future<Output = Result<i64, StoreError>> + Send {
        async { Ok(0) }
    }

    /// Reads the state of a resource at a revision. Returns false if it does not fit. [`StoreError::Compacted`]: parts of it
    /// may have been compacted during the read.
    fn read_state(
        &self,
        slot: &Slot,
        revision: i64,
        builder: &mut SnapshotBuilder,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Catches up with a compaction by another process: applies the commits since, because the visible revision is compacted.
    fn catch_up(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }

    /// Loads a resource unless it is cached or does not fit into the cache.
    fn ensure_loaded(&self, slot: &Slot) -> impl Future<Output = Result<(), StoreError>> + Send {
        async move {
            if slot.is_load_unneeded() {
                return Ok(());
            }
            let Some(_guard) = slot.lock_for_load().await else { return Ok(()) };
            let mut last = Ok(());
            for _ in 0..MAX_READS {
                if last.is_err() {
                    self.catch_up().await?;
                }
                if slot.is_load_unneeded() {
                    return Ok(());
                }
                last = load_into_cache(self, slot).await;
                if !matches!(last, Err(StoreError::Compacted { .. })) {
                    return last;
                }
            }
            last
        }
    }

    /// Returns the complete current state of a resource, from the cache or read for this caller.
    fn full_snapshot(&self, slot: &Slot) -> impl Future<Output = Result<Snapshot, StoreError>> + Send {
        async move {
            self.ensure_loaded(slot).await?;
            if let Some(snapshot) = slot.snapshot(self.hub().revision()) {
                return Ok(snapshot);
            }
            self.metrics().reads_past_cache.inc();
            let _permit = self.full_read_permits().acquire().await.map_err(|_| StoreError::Closed)?;
            let mut last = StoreError::Closed;
            for _ in 0..MAX_READS {
                let (read_point, mut builder) =
                    (self.cache().begin_read(slot), self.cache().unbudgeted_builder());
                // A builder without a budget accepts all objects.
                match self.read_state(slot, read_point.revision, &mut builder).await {
                    Ok(_is_whole) => return Ok(self.cache().snapshot_of(slot, &read_point, builder)),
                    Err(error @ StoreError::Compacted { .. }) => last = error,
                    Err(error) => return Err(error),
                }
                self.catch_up().await?;
            }
            Err(last)
        }
    }
}

/// Loads a resource if it fits into the cache.
async fn load_into_cache(engine: &(impl Loader + ?Sized), slot: &Slot) -> Result<(), StoreError> {
    let cache = engine.cache();
    if let Some(max_bytes) = cache.max_load_bytes(slot) {
        let bytes = engine.estimate_bytes(slot, max_bytes).await?;
        if !cache.make_room(slot, bytes) {
            return Ok(());
        }
    }
    let (load_guard, mut builder) = (cache.begin_load(slot), cache.builder(slot));
    if !engine.read_state(slot, load_guard.revision, &mut builder).await? {
        cache.reject(slot, builder.bytes());
        return Ok(());
    }
    if builder.has_unreadable() {
        engine.metrics().unreadable(&slot.resource, builder.unreadable_mut().len());
    }
    cache.end_load(&load_guard, builder);
    Ok(())
}
