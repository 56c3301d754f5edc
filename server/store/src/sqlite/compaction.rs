//! Compaction: deletes history by age and size and releases free pages of the file, in small steps of the writer between commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::history::PREVIOUS;
use super::maintenance::{Maintenance, STEP_REVISIONS, Step};
use super::reader::{Reader, store_error};
use super::space::Space;
use super::writer::Request;
use crate::archive_rules::ArchiveRules;
use crate::error::StoreError;
use crate::metrics::Metrics;
use crate::publish::HistoryBytes;
use crate::unix_time::{AgeClock, subtract};
use crate::unreadable::MissingStates;

/// Periodic compaction task.
pub(crate) struct Compactor {
    pub(crate) reader: Arc<Reader>,
    pub(crate) requests: mpsc::Sender<Request>,
    pub(crate) history: Arc<HistoryBytes>,
    pub(crate) metrics: Metrics,
    pub(crate) retention: Duration,
    pub(crate) max_bytes: u64,
    pub(crate) mark_retention: Duration,
    pub(crate) archive: ArchiveRules,
    pub(crate) archive_max_bytes: u64,
    pub(crate) interval: Duration,
    pub(crate) path: std::path::PathBuf,
    pub(crate) space: Arc<Space>,
    /// True if free pages or a log that could not be cut may remain for the next tick.
    pub(crate) shrink_pending: AtomicBool,
    /// Unknown until the file has been compared with its index.
    pub(crate) missing_states: Mutex<MissingStates>,
}

/// Progress of the compaction.
struct CompactionProgress {
    opened_at: i64,
    /// True if the superseded values from before the store was opened are counted.
    counted: bool,
    /// Revision at the last deletion of marks.
    marks_revision: i64,
    clock: AgeClock,
    closing: CancellationToken,
}

impl Compactor {
    pub(crate) async fn run(self: Arc<Self>, closing: CancellationToken) {
        let opened_at = self.reader.hub.revision();
        let clock = AgeClock::new();
        let mut progress =
            CompactionProgress { opened_at, counted: false, marks_revision: 0, clock, closing };
        let mut ticks = interval_at(Instant::now() + self.interval, self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        if let Err(error) = self.note_archived().await {
            tracing::warn!(%error, "cannot record the resources with retained history, retrying");
        }
        self.compare(&progress).await;
        loop {
            // Only waits are cancelled, not statements: closing the pool waits for those in any case.
            let result = tokio::select! {
                biased;
                () = progress.closing.cancelled() => return,
                _ = ticks.tick() => self.tick(&mut progress).await,
                () = self.space.wait_for_retry() => self.shrink_file().await,
            };
            match result {
                Ok(()) => {}
                Err(StoreError::Closed) => return,
                Err(error) => tracing::warn!(%error, "cannot compact the history, retrying"),
            }
        }
    }

    async fn tick(&self, progress: &mut CompactionProgress) -> Result<(), StoreError> {
        self.compare(progress).await;
        if !progress.counted {
            let stored = self.stored_bytes(progress.opened_at).await?;
            self.history.bytes.fetch_add(stored, Ordering::Relaxed);
            progress.counted = true;
        }
        self.step(Step::LeaveDeleteOnly).await?;
        if self.shrink_pending.load(Ordering::Relaxed) || self.space.delete_only_reason().is_some() {
            self.shrink_file().await?;
        }
        let now = progress.clock.now();
        let until = self.retention_limit(now).await?;
        self.compact(until).await?;
        let limit = i64::try_from(self.max_bytes).unwrap_or(i64::MAX);
        if self.history.bytes.load(Ordering::Relaxed) > limit {
            self.shrink_history(limit / 4 * 3).await?;
        }
        self.enforce_archive_limits(now).await?;
        let revision = self.reader.hub.revision();
        if revision != progress.marks_revision {
            let oldest = subtract(now, self.mark_retention.max(self.retention));
            self.step(Step::DeleteMarks { oldest }).await?;
            progress.marks_revision = revision;
        }
        if let Ok(file) = tokio::fs::metadata(&self.path).await {
            self.metrics.file_bytes.set(i64::try_from(file.len()).unwrap_or(i64::MAX));
        }
        Ok(())
    }

    /// Returns the size of superseded values that existed when the store was opened, in bytes.
    async fn stored_bytes(&self, opened_at: i64) -> Result<i64, StoreError> {
        let select = format!(
            "SELECT coalesce(sum(length(p.value) - 1), 0) + coalesce(sum(l.deleted * (length(l.value) - 1)), 0) \
             FROM log l LEFT JOIN log p ON {PREVIOUS} WHERE l.revision > ? AND l.revision <= ?"
        );
        let select = sqlx::query_scalar(sqlx::AssertSqlSafe(select));
        let select = select.bind(self.reader.hub.compacted()).bind(opened_at);
        select.fetch_one(&self.reader.pool).await.map_err(store_error)
    }

    /// Compares the file with its index, unless this was done. On a full disk the comparison is postponed: shrinking the file has
    /// priority, and it compacts with each deletion, which makes the result unknown.
    async fn compare(&self, progress: &CompactionProgress) {
        let should_continue =
            || self.space.delete_only_reason().is_none() && !progress.closing.is_cancelled();
        if *self.missing_states.lock() != MissingStates::Unknown || !should_continue() {
            return;
        }
        match self.reader.find_missing_states(progress.opened_at, &should_continue).await {
            Ok(found) => *self.missing_states.lock() = found,
            Err(StoreError::Closed) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot compare the database file with the index, retrying");
            }
        }
    }

    /// Returns the newest revision that is older than the retention.
    async fn retention_limit(&self, now: i64) -> Result<i64, StoreError> {
        self.reader.revision_at(subtract(now, self.retention)).await
    }

    async fn shrink_history(&self, bytes: i64) -> Result<(), StoreError> {
        let revision = self.reader.hub.revision();
        let mut compacted = self.reader.hub.compacted();
        while compacted < revision && self.history.bytes.load(Ordering::Relaxed) > bytes {
            compacted =
                self.step(Step::Compact(compacted.saturating_add(STEP_REVISIONS).min(revision))).await?;
        }
        self.shrink_file().await
    }

    /// Deletes history before `until` in steps, then shrinks the file.
    pub(crate) async fn compact(&self, until: i64) -> Result<i64, StoreError> {
        let until = until.min(self.reader.hub.revision());
        let mut compacted = self.reader.hub.compacted();
        if until <= compacted {
            if self.space.delete_only_reason().is_some() {
                self.shrink_file().await?;
            }
            return Ok(compacted);
        }
        while compacted < until {
            compacted = self.step(Step::Compact(until)).await?;
        }
        self.shrink_file().await?;
        Ok(compacted)
    }

    pub(super) async fn shrink_file(&self) -> Result<(), StoreError> {
        let is_full = self.space.delete_only_reason().is_some();
        let mut has_released_pages = self.shrink_pending.load(Ordering::Relaxed);
        while self.step(Step::Vacuum).await? > 0 {
            has_released_pages = true;
        }
        // With sealed values, the log must not contain content longer than the file.
        let mut is_cut = true;
        if has_released_pages || self.reader.seal.is_active() {
            is_cut = self.step(Step::Checkpoint).await? == 0;
        }
        self.shrink_pending.store(is_full || !is_cut, Ordering::Relaxed);
        if is_full {
            self.step(Step::LeaveDeleteOnly).await?;
        }
        Ok(())
    }

    pub(super) async fn step(&self, step: Step) -> Result<i64, StoreError> {
        let (reply, response) = oneshot::channel();
        let request = Request::Maintain(Maintenance { step, reply });
        self.requests.send(request).await.map_err(|_| StoreError::Closed)?;
        response.await.map_err(|_| StoreError::Closed)?
    }
}
