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
use super::read::{Reader, failed};
use super::space::Space;
use super::writer::Request;
use crate::archive_rules::ArchiveRules;
use crate::error::StoreError;
use crate::metrics::Metrics;
use crate::publish::HistoryBytes;
use crate::unix_time::{AgeClock, before};
use crate::unreadable::Incomplete;

/// Periodic compaction task.
pub(crate) struct Compactor {
    pub(crate) reader: Arc<Reader>,
    pub(crate) requests: mpsc::Sender<Request>,
    pub(crate) history: Arc<HistoryBytes>,
    pub(crate) metrics: Metrics,
    pub(crate) retention: Duration,
    pub(crate) max_bytes: u64,
    pub(crate) marks_kept: Duration,
    pub(crate) archive: ArchiveRules,
    pub(crate) archive_max_bytes: u64,
    pub(crate) interval: Duration,
    pub(crate) path: std::path::PathBuf,
    pub(crate) space: Arc<Space>,
    /// True if free pages or a log that could not be cut may remain for the next tick.
    pub(crate) gives_again: AtomicBool,
    /// Unknown until the file has been compared with its index.
    pub(crate) incomplete: Mutex<Incomplete>,
}

/// Progress of the compaction.
struct Progress {
    opened_at: i64,
    /// True if the superseded values from before the store was opened are counted.
    counted: bool,
    /// Revision at the last deletion of marks.
    marked: i64,
    clock: AgeClock,
    closing: CancellationToken,
}

impl Compactor {
    pub(crate) async fn run(self: Arc<Self>, closing: CancellationToken) {
        let opened_at = self.reader.hub.revision();
        let clock = AgeClock::new();
        let mut progress = Progress { opened_at, counted: false, marked: 0, clock, closing };
        let mut ticks = interval_at(Instant::now() + self.interval, self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        if let Err(error) = self.note_archived().await {
            tracing::warn!(%error, "cannot record the resources with retained history, retrying");
        }
        self.compare(&progress).await;
        loop {
            // Only waits are cancelled, not statements: closing the pool waits for those in any case.
            let done = tokio::select! {
                biased;
                () = progress.closing.cancelled() => return,
                _ = ticks.tick() => self.tick(&mut progress).await,
                () = self.space.retry() => self.give_back().await,
            };
            match done {
                Ok(()) => {}
                Err(StoreError::Closed) => return,
                Err(error) => tracing::warn!(%error, "cannot compact the history, retrying"),
            }
        }
    }

    async fn tick(&self, progress: &mut Progress) -> Result<(), StoreError> {
        self.compare(progress).await;
        if !progress.counted {
            let stored = self.stored_bytes(progress.opened_at).await?;
            self.history.bytes.fetch_add(stored, Ordering::Relaxed);
            progress.counted = true;
        }
        self.step(Step::Relax).await?;
        if self.gives_again.load(Ordering::Relaxed) || self.space.full().is_some() {
            self.give_back().await?;
        }
        let now = progress.clock.now();
        let until = self.aged(now).await?;
        self.compact(until).await?;
        let limit = i64::try_from(self.max_bytes).unwrap_or(i64::MAX);
        if self.history.bytes.load(Ordering::Relaxed) > limit {
            self.shrink_history(limit / 4 * 3).await?;
        }
        self.tend_archive(now).await?;
        let revision = self.reader.hub.revision();
        if revision != progress.marked {
            let oldest = before(now, self.marks_kept.max(self.retention));
            self.step(Step::ForgetMarks { oldest }).await?;
            progress.marked = revision;
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
        select.fetch_one(&self.reader.pool).await.map_err(failed)
    }

    /// Compares the file with its index, unless this was done. On a full disk the comparison is postponed: shrinking the file has
    /// priority, and it compacts with each deletion, which makes the result unknown.
    async fn compare(&self, progress: &Progress) {
        let goes_on = || self.space.full().is_none() && !progress.closing.is_cancelled();
        if *self.incomplete.lock() != Incomplete::Unknown || !goes_on() {
            return;
        }
        match self.reader.incomplete(progress.opened_at, &goes_on).await {
            Ok(found) => *self.incomplete.lock() = found,
            Err(StoreError::Closed) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot compare the database file with the index, retrying");
            }
        }
    }

    /// Returns the newest revision that is older than the retention.
    async fn aged(&self, now: i64) -> Result<i64, StoreError> {
        self.reader.revision_at(before(now, self.retention)).await
    }

    async fn shrink_history(&self, bytes: i64) -> Result<(), StoreError> {
        let revision = self.reader.hub.revision();
        let mut reached = self.reader.hub.compacted();
        while reached < revision && self.history.bytes.load(Ordering::Relaxed) > bytes {
            reached = self.step(Step::Compact(reached.saturating_add(STEP_REVISIONS).min(revision))).await?;
        }
        self.give_back().await
    }

    /// Deletes history before `until` in steps, then shrinks the file.
    pub(crate) async fn compact(&self, until: i64) -> Result<i64, StoreError> {
        let until = until.min(self.reader.hub.revision());
        let mut reached = self.reader.hub.compacted();
        if until <= reached {
            if self.space.full().is_some() {
                self.give_back().await?;
            }
            return Ok(reached);
        }
        while reached < until {
            reached = self.step(Step::Compact(until)).await?;
        }
        self.give_back().await?;
        Ok(reached)
    }

    pub(super) async fn give_back(&self) -> Result<(), StoreError> {
        let is_full = self.space.full().is_some();
        let mut gave = self.gives_again.load(Ordering::Relaxed);
        while self.step(Step::Vacuum).await? > 0 {
            gave = true;
        }
        // With sealed values, the log must not contain content longer than the file.
        let mut is_cut = true;
        if gave || self.reader.seal.is_active() {
            is_cut = self.step(Step::Checkpoint).await? == 0;
        }
        self.gives_again.store(is_full || !is_cut, Ordering::Relaxed);
        if is_full {
            self.step(Step::Relax).await?;
        }
        Ok(())
    }

    pub(super) async fn step(&self, step: Step) -> Result<i64, StoreError> {
        let (reply, answer) = oneshot::channel();
        let request = Request::Maintain(Maintenance { step, reply });
        self.requests.send(request).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}
