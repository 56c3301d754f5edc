//! Retention of the archive: deletes states older than the retention of their resource, then the oldest states above the size
//! limit. Runs with each compaction.

use std::time::Duration;

use super::archive_writes::STEP_STATES;
use super::compaction::Compactor;
use super::maintenance::Step;
use super::reader::store_error;
use crate::copy::{ArchiveCursor, CopySource};
use crate::error::StoreError;
use crate::reseal::{self, ResealProgress};
use crate::unix_time::subtract;

/// Maximum wait of resealing for readers of the log, and interval of the checks.
const LOG_CUT_TIMEOUT: Duration = Duration::from_secs(30);
const LOG_CUT_INTERVAL: Duration = Duration::from_millis(100);

impl Compactor {
    /// Records which resources are archived, so that copies know it before the log deletes their history. Returns
    /// the previously archived resources.
    pub(super) async fn note_archived(&self) -> Result<Vec<i64>, StoreError> {
        let archived = sqlx::query_scalar("SELECT resource FROM archived ORDER BY resource");
        let archived: Vec<i64> = archived.fetch_all(&self.reader.pool).await.map_err(store_error)?;
        let mut resources = self.reader.cache.resources();
        resources.retain(|id, resource| self.archive.retention(resource).is_some() && !archived.contains(id));
        if !resources.is_empty() {
            self.step(Step::NoteArchived).await?;
        }
        Ok(archived)
    }

    /// Deletes states that exceed the retention or the size limit.
    pub(super) async fn enforce_archive_limits(&self, now: i64) -> Result<(), StoreError> {
        let archived = self.note_archived().await?;
        for resource in &archived {
            let rule =
                self.reader.cache.by_id(*resource).and_then(|slot| self.archive.retention(&slot.resource));
            let until = match rule {
                Some(retention) => Some(self.reader.revision_at(subtract(now, retention)).await?),
                None => None,
            };
            while self.step(Step::DeleteArchived { resource: *resource, until }).await? == STEP_STATES {}
        }
        let bytes = self.archive_bytes().await?;
        // On a full disk, other writes have priority over past states.
        let limit = match self.space.delete_only_reason() {
            Some(_) => bytes / 2,
            None => i64::try_from(self.archive_max_bytes).unwrap_or(i64::MAX),
        };
        while self.archive_bytes().await? > limit {
            let Some(resource) = self.resource_of_oldest().await? else { break };
            self.step(Step::DeleteArchived { resource, until: Some(i64::MAX) }).await?;
        }
        Ok(())
    }

    /// Renews the seals of the next part of the archive after a cursor.
    pub(super) async fn reseal(
        &self,
        source: &dyn CopySource,
        until: i64,
        after: ArchiveCursor,
    ) -> Result<ResealProgress, StoreError> {
        let replace = async |values| self.step(Step::Reseal(values)).await.map(drop);
        let progress = reseal::step(source, &self.reader.seal, until, after, replace).await?;
        if progress.next.is_none() {
            self.shrink_file().await?;
            self.cut_log().await?;
        }
        Ok(progress)
    }

    /// Waits until the write-ahead log is cut: it still contains the old values, and cannot be cut while a reader uses them.
    async fn cut_log(&self) -> Result<(), StoreError> {
        let checkpoint = async {
            let mut period = tokio::time::interval(LOG_CUT_INTERVAL);
            loop {
                period.tick().await;
                if self.step(Step::Checkpoint).await? == 0 {
                    return Ok(());
                }
            }
        };
        tokio::time::timeout(LOG_CUT_TIMEOUT, checkpoint).await.unwrap_or_else(|_| {
            let reason = "a long read keeps old values in the write-ahead log: try again later";
            Err(StoreError::Unavailable(reason.to_owned()))
        })
    }

    /// Returns the size of the archive in bytes, from an index.
    async fn archive_bytes(&self) -> Result<i64, StoreError> {
        let sum = sqlx::query_scalar("SELECT coalesce(sum(bytes), 0) FROM archive INDEXED BY archive_until");
        let bytes = sum.fetch_one(&self.reader.pool).await.map_err(store_error)?;
        self.metrics.archive_bytes.set(bytes);
        Ok(bytes)
    }

    /// Returns the resource of the state that was superseded first.
    async fn resource_of_oldest(&self) -> Result<Option<i64>, StoreError> {
        let oldest = sqlx::query_scalar("SELECT resource FROM archive ORDER BY until LIMIT 1");
        oldest.fetch_optional(&self.reader.pool).await.map_err(store_error)
    }
}
