//! Reads complete resources: into the cache if they fit, or for one caller. Engines implement the reads.

use tokio::sync::Semaphore;

use crate::cache::{Cache, Intake, Slot};
use crate::error::StoreError;
use crate::hub::Hub;
use crate::metrics::Metrics;
use crate::snapshot::Snapshot;
use crate::txn::Txn;

/// Maximum number of reads of a resource whose revision is compacted during the read.
const READS: u32 = 5;

/// Engine that reads complete resources.
pub(crate) trait Load: Send + Sync {
    /// Returns the cache to load into.
    fn cache(&self) -> &Cache;

    fn hub(&self) -> &Hub;

    fn metrics(&self) -> &Metrics;

    /// Returns the permits that limit concurrent reads of complete resources for single callers.
    fn whole_reads(&self) -> &Semaphore;

    /// Returns the reason if the database cannot store the values of a Txn. Only this Txn of a request is then rejected.
    fn unacceptable(&self, _: &Txn) -> Option<String> {
        None
    }

    /// Estimates the memory in bytes that the objects of a resource would use. The estimate stops at the first object that
    /// exceeds `most`. Called only if the cache has a size limit.
    fn estimate(&self, _: &Slot, _most: i64) -> impl Future<Output = Result<i64, StoreError>> + Send {
        async { Ok(0) }
    }

    /// Reads the state of a resource at a revision. Returns false if it does not fit. [`StoreError::Compacted`]: parts of it
    /// may have been compacted during the read.
    fn read_state(
        &self,
        slot: &Slot,
        revision: i64,
        intake: &mut Intake,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Catches up with a compaction by another process: applies the commits since, because the visible revision is compacted.
    fn catch_up(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }

    /// Loads a resource unless it is cached or does not fit into the cache.
    fn ensure_loaded(&self, slot: &Slot) -> impl Future<Output = Result<(), StoreError>> + Send {
        async move {
            if slot.is_settled() {
                return Ok(());
            }
            let Some(_turn) = slot.turn_to_load().await else { return Ok(()) };
            let mut last = Ok(());
            for _ in 0..READS {
                if last.is_err() {
                    self.catch_up().await?;
                }
                if slot.is_settled() {
                    return Ok(());
                }
                last = load(self, slot).await;
                if !matches!(last, Err(StoreError::Compacted { .. })) {
                    return last;
                }
            }
            last
        }
    }

    /// Returns the complete current state of a resource, from the cache or read for this caller.
    fn whole(&self, slot: &Slot) -> impl Future<Output = Result<Snapshot, StoreError>> + Send {
        async move {
            self.ensure_loaded(slot).await?;
            if let Some(snapshot) = slot.snapshot(self.hub().revision()) {
                return Ok(snapshot);
            }
            self.metrics().reads_past_cache.inc();
            let _permit = self.whole_reads().acquire().await.map_err(|_| StoreError::Closed)?;
            let mut last = StoreError::Closed;
            for _ in 0..READS {
                let (begun, mut intake) = (self.cache().begin_read(slot), self.cache().intake_for_caller());
                // A builder without a budget accepts all objects.
                match self.read_state(slot, begun.revision, &mut intake).await {
                    Ok(_is_whole) => return Ok(self.cache().snapshot_of(slot, &begun, intake)),
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
async fn load(engine: &(impl Load + ?Sized), slot: &Slot) -> Result<(), StoreError> {
    let cache = engine.cache();
    if let Some(most) = cache.most(slot) {
        let bytes = engine.estimate(slot, most).await?;
        if !cache.make_room(slot, bytes) {
            return Ok(());
        }
    }
    let (loading, mut intake) = (cache.begin_load(slot), cache.intake(slot));
    if !engine.read_state(slot, loading.revision, &mut intake).await? {
        cache.leave(slot, intake.bytes());
        return Ok(());
    }
    if intake.has_unreadable() {
        engine.metrics().unreadable(&slot.resource, intake.unreadable_mut().len());
    }
    cache.end_load(&loading, intake);
    Ok(())
}
