//! Reads a resource whole: into memory where there is room for it, or for one caller. Engines say how what it was is read.

use tokio::sync::Semaphore;

use crate::cache::{Cache, Intake, Slot};
use crate::error::StoreError;
use crate::hub::Hub;
use crate::metrics::Metrics;
use crate::snapshot::Snapshot;
use crate::txn::Txn;

/// How often a resource is read whose history is forgotten meanwhile.
const READS: u32 = 5;

/// How an engine reads resources whole.
pub(crate) trait Load: Send + Sync {
    /// What is loaded into.
    fn cache(&self) -> &Cache;

    fn hub(&self) -> &Hub;

    fn metrics(&self) -> &Metrics;

    /// One permit for each caller for whom a resource is read whole at a time.
    fn whole_reads(&self) -> &Semaphore;

    /// Why the database cannot hold what a Txn would write, if so: of several Txns that one alone is refused.
    fn unacceptable(&self, _: &Txn) -> Option<String> {
        None
    }

    /// About how many bytes the objects of a resource would take in memory; of those beyond `most` one alone is counted. Asked only
    /// where memory has a budget.
    fn estimate(&self, _: &Slot, _most: i64) -> impl Future<Output = Result<i64, StoreError>> + Send {
        async { Ok(0) }
    }

    /// Reads the state of a resource at a revision; false when there is no room for all of it. [`StoreError::Compacted`]: some of it
    /// may have been forgotten meanwhile.
    fn read_state(
        &self,
        slot: &Slot,
        revision: i64,
        intake: &mut Intake,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Where others forget history, too: takes up what was written since, for what is shown here is behind what was forgotten.
    fn catch_up(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }

    /// Loads a resource unless it is in memory, or memory has no room for it.
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

    /// The current state of a resource, whole: from memory, or read for this caller.
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
                // For a caller there is room.
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

/// Loads a resource if there is room for it.
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
