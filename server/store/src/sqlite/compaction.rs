//! Forgets history by age and size, and gives the file's free pages back: small steps, done by the writer between commits.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

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
use crate::unix_time::{self, before};

/// Decides what to forget, on a period.
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
}

impl Compactor {
    pub(crate) async fn run(self: Arc<Self>, closing: CancellationToken) {
        let opened_at = self.reader.hub.revision();
        let mut ticks = interval_at(Instant::now() + self.interval, self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut counted, mut marked) = (false, 0);
        let work = async {
            if let Err(error) = self.note_archived().await {
                tracing::warn!(%error, "whose history is kept could not be noted; tried again later");
            }
            loop {
                let done = tokio::select! {
                    _ = ticks.tick() => self.tick(&mut counted, &mut marked, opened_at).await,
                    () = self.space.retry() => self.replenish().await,
                };
                match done {
                    Ok(()) => {}
                    Err(StoreError::Closed) => return,
                    Err(error) => tracing::warn!(%error, "history could not be compacted; tried again later"),
                }
            }
        };
        closing.run_until_cancelled(work).await;
    }

    async fn tick(&self, counted: &mut bool, marked: &mut i64, opened_at: i64) -> Result<(), StoreError> {
        if !*counted {
            let stored = self.stored_bytes(opened_at).await?;
            self.history.bytes.fetch_add(stored, Ordering::Relaxed);
            *counted = true;
        }
        let now = unix_time::now();
        let until = self.aged(now).await?;
        self.compact(until).await?;
        let limit = i64::try_from(self.max_bytes).unwrap_or(i64::MAX);
        if self.history.bytes.load(Ordering::Relaxed) > limit {
            self.shrink_history(limit / 4 * 3).await?;
        }
        self.tend_archive(now).await?;
        let revision = self.reader.hub.revision();
        if revision != *marked {
            self.step(Step::Mark { at: now, oldest: before(now, self.marks_kept.max(self.retention)) })
                .await?;
            *marked = revision;
        }
        self.replenish().await?;
        if let Ok(file) = tokio::fs::metadata(&self.path).await {
            self.metrics.file_bytes.set(i64::try_from(file.len()).unwrap_or(i64::MAX));
        }
        Ok(())
    }

    /// Makes the reserve for deletions when it is missing.
    async fn replenish(&self) -> Result<(), StoreError> {
        let space = self.space.clone();
        match portico_kit::tasks::blocking(move || space.replenish()).await {
            Some(Ok(())) => self.step(Step::Relax).await.map(drop),
            Some(Err(error)) => {
                let error = portico_gostd::os::error_text(&error);
                match self.space.full() {
                    Some(_) => tracing::debug!(error, "there is no space for the reserve"),
                    None => {
                        tracing::warn!(
                            error,
                            "there is no space for the reserve: deletions have none on a full disk"
                        )
                    }
                }
                Ok(())
            }
            None => Err(StoreError::Closed),
        }
    }

    /// Superseded values that were there when the store was opened.
    async fn stored_bytes(&self, opened_at: i64) -> Result<i64, StoreError> {
        let select = format!(
            "SELECT coalesce(sum(length(p.value) - 1), 0) + coalesce(sum(l.deleted * (length(l.value) - 1)), 0) \
             FROM log l LEFT JOIN log p ON {PREVIOUS} WHERE l.revision > ? AND l.revision <= ?"
        );
        let select = sqlx::query_scalar(sqlx::AssertSqlSafe(select));
        let select = select.bind(self.reader.hub.compacted()).bind(opened_at);
        select.fetch_one(&self.reader.pool).await.map_err(failed)
    }

    /// The newest revision that is older than the retention.
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

    /// Forgets everything before `until`, in steps, then shrinks the file.
    pub(crate) async fn compact(&self, until: i64) -> Result<i64, StoreError> {
        let until = until.min(self.reader.hub.revision());
        let mut reached = self.reader.hub.compacted();
        if until <= reached {
            return Ok(reached);
        }
        while reached < until {
            reached = self.step(Step::Compact(until)).await?;
        }
        self.give_back().await?;
        Ok(reached)
    }

    pub(super) async fn give_back(&self) -> Result<(), StoreError> {
        let mut gave = false;
        while self.step(Step::Vacuum).await? > 0 {
            gave = true;
        }
        // Where values are sealed the log keeps no longer what the file has forgotten.
        if gave || self.reader.seal.is_active() {
            self.step(Step::Checkpoint).await?;
        }
        match self.space.full() {
            Some(_) => self.replenish().await,
            None => Ok(()),
        }
    }

    pub(super) async fn step(&self, step: Step) -> Result<i64, StoreError> {
        let (reply, answer) = oneshot::channel();
        let request = Request::Maintain(Maintenance { step, reply });
        self.requests.send(request).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}
