//! Decides what of the archive is forgotten: what is older than its resource's states are kept, then the oldest beyond the bytes that all may
//! take. A part of the compaction's period.

use super::archiving::STEP_STATES;
use super::compaction::Compactor;
use super::maintenance::Step;
use super::read::failed;
use crate::error::StoreError;
use crate::unix_time::before;

impl Compactor {
    /// Forgets what is too old, and too much.
    pub(super) async fn tend_archive(&self, now: i64) -> Result<(), StoreError> {
        let pool = &self.reader.pool;
        let archived = sqlx::query_scalar("SELECT resource FROM archived ORDER BY resource");
        let archived: Vec<i64> = archived.fetch_all(pool).await.map_err(failed)?;
        for resource in &archived {
            let rule = self.reader.cache.by_id(*resource).and_then(|slot| self.archive.of(&slot.resource));
            let until = match rule {
                Some(kept) => Some(self.reader.revision_at(before(now, kept)).await?),
                None => None,
            };
            while self.step(Step::Forget { resource: *resource, until }).await? == STEP_STATES {}
        }
        let bytes = self.archive_bytes().await?;
        // On a full disk other writes come before what is past.
        let limit = match self.space.full() {
            Some(_) => bytes / 2,
            None => i64::try_from(self.archive_max_bytes).unwrap_or(i64::MAX),
        };
        while self.archive_bytes().await? > limit {
            let Some(resource) = self.oldest(&archived).await? else { break };
            self.step(Step::Forget { resource, until: Some(i64::MAX) }).await?;
        }
        Ok(())
    }

    /// How many bytes the archive has: an index knows.
    async fn archive_bytes(&self) -> Result<i64, StoreError> {
        let sum = sqlx::query_scalar("SELECT coalesce(sum(bytes), 0) FROM archive INDEXED BY archive_until");
        let bytes = sum.fetch_one(&self.reader.pool).await.map_err(failed)?;
        self.metrics.archive_bytes.set(bytes);
        Ok(bytes)
    }

    /// The resource of the state that was superseded first.
    async fn oldest(&self, archived: &[i64]) -> Result<Option<i64>, StoreError> {
        let mut firsts = Vec::with_capacity(archived.len());
        for resource in archived {
            let first =
                sqlx::query_scalar("SELECT min(until) FROM archive WHERE resource = ?").bind(resource);
            let first: Option<i64> = first.fetch_one(&self.reader.pool).await.map_err(failed)?;
            firsts.extend(first.map(|first| (first, *resource)));
        }
        Ok(firsts.into_iter().min().map(|(_, resource)| resource))
    }
}
