//! Retention of the archive: deletes states older than the retention of their resource, then the oldest states above the size
//! limit. Runs with each compaction, in every control service; work that another one has done is not repeated.

use super::compaction::Compactor;
use super::failure::failed;
use super::row;
use crate::copy::{ArchiveAt, CopySource};
use crate::error::StoreError;
use crate::reseal::{self, Resealed, ResealedPast};
use crate::unix_time::{self, before};

/// Maximum number of states that one step deletes.
const STEP_STATES: i64 = 1_000;

impl Compactor {
    /// Returns the archived resources, as named in columns.
    pub(super) fn archived(&self) -> Vec<String> {
        if self.archive.is_empty() {
            return Vec::new();
        }
        let resources = self.reader.cache.resources().into_values();
        resources.filter(|r| self.archive.of(r).is_some()).map(|r| r.to_string()).collect()
    }

    /// Records which resources are archived, so that copies know it before the log deletes their history. Waits for a
    /// concurrent sweep, which may not have seen the entries: the archive of a new resource is complete after that sweep.
    pub(super) async fn note_archived(&self) -> Result<(), StoreError> {
        const NOTE: &str = "INSERT INTO archived (resource, since) SELECT r, s.revision FROM unnest($1::text[]) r, swept s \
            WHERE s.id = 1 AND NOT EXISTS (SELECT 1 FROM archived d WHERE d.resource = r) FOR SHARE OF s \
            ON CONFLICT DO NOTHING";
        let archived = self.archived();
        if archived.is_empty() {
            return Ok(());
        }
        let pool = &self.reader.pool;
        let mut lent = pool.take().await.map_err(failed)?;
        lent.begin().await.map_err(failed)?;
        let noted = sqlx::query(NOTE).bind(archived).execute(&mut *lent);
        pool.in_time(noted).await.map_err(failed)?;
        lent.commit().await.map_err(failed)
    }

    /// Deletes states that exceed the retention or the size limit.
    pub(super) async fn tend_archive(&self) -> Result<(), StoreError> {
        self.note_archived().await?;
        let archived = sqlx::query_scalar("SELECT resource FROM archived ORDER BY resource");
        let archived = self.reader.pool.read(async |c| archived.fetch_all(c).await);
        let archived: Vec<String> = archived.await.map_err(failed)?;
        for resource in &archived {
            let until = match self.archive.of(&row::resource(resource)) {
                Some(kept) => Some(self.reader.revision_at(before(unix_time::now(), kept)).await?),
                None => None,
            };
            while self.forget_states(resource, until).await? == STEP_STATES {}
        }
        let limit = i64::try_from(self.archive_max_bytes).unwrap_or(i64::MAX);
        while self.archive_bytes().await? > limit {
            let Some(resource) = self.oldest().await? else { break };
            self.forget_states(&resource, Some(i64::MAX)).await?;
        }
        Ok(())
    }

    /// Renews the seals of the next part of the log and the archive after a cursor.
    pub(super) async fn reseal(
        &self,
        source: &dyn CopySource,
        until: i64,
        behind: ArchiveAt,
    ) -> Result<ResealedPast, StoreError> {
        // The sweep of compacted history runs later, and archives the resources that are recorded by then.
        if behind == ArchiveAt::default() {
            self.note_archived().await?;
        }
        reseal::step(source, &self.reader.seal, until, behind, async |values| self.replace(values).await)
            .await
    }

    /// Replaces the values of past states in one transaction. The second statement finds a row that was swept from the log in the
    /// meantime. Deleted states stay deleted.
    async fn replace(&self, values: Vec<Resealed>) -> Result<(), StoreError> {
        const LOG: &str = "UPDATE log t SET value = s.value FROM unnest($1::bigint[], $2::bytea[]) s (revision, value) \
            WHERE t.revision = s.revision";
        const ARCHIVE: &str = "UPDATE archive t SET value = s.value, bytes = octet_length(s.value) \
            FROM unnest($1::bigint[], $2::bytea[]) s (revision, value) WHERE t.revision = s.revision";
        let (revisions, values): (Vec<i64>, Vec<Vec<u8>>) = values.into_iter().unzip();
        let pool = &self.reader.pool;
        let mut lent = pool.take().await.map_err(failed)?;
        lent.begin().await.map_err(failed)?;
        for statement in [LOG, ARCHIVE] {
            let replace = sqlx::query(statement).bind(&revisions).bind(&values).execute(&mut *lent);
            pool.in_time(replace).await.map_err(failed)?;
        }
        lent.commit().await.map_err(failed)
    }

    /// Returns the size of the archive in bytes, from an index.
    async fn archive_bytes(&self) -> Result<i64, StoreError> {
        let sum = sqlx::query_scalar("SELECT coalesce(sum(bytes), 0)::bigint FROM archive");
        let bytes = self.reader.pool.read(async |c| sum.fetch_one(c).await).await.map_err(failed)?;
        self.reader.metrics.archive_bytes.set(bytes);
        Ok(bytes)
    }

    /// Returns the resource of the state that was superseded first.
    async fn oldest(&self) -> Result<Option<String>, StoreError> {
        const OLDEST: &str = "SELECT resource FROM archive ORDER BY until, revision LIMIT 1";
        let oldest = sqlx::query_scalar(OLDEST);
        self.reader.pool.read(async |c| oldest.fetch_optional(c).await).await.map_err(failed)
    }

    /// Deletes the oldest states of a resource that were superseded up to a revision, at most [`STEP_STATES`]. Returns their
    /// number. `None` deletes all states, for a resource that is no longer archived.
    async fn forget_states(&self, resource: &str, until: Option<i64>) -> Result<i64, StoreError> {
        const FORGET: &str = "WITH gone AS (DELETE FROM archive WHERE revision IN (SELECT revision FROM archive \
            WHERE resource = $1 AND until <= $2 ORDER BY until LIMIT $3) RETURNING until), \
            counted AS (SELECT count(*) AS states, max(until) AS last FROM gone), \
            noted AS (UPDATE archived SET since = greatest(since, \
            CASE WHEN c.states = $3 THEN c.last ELSE least($2, m.compacted) END) \
            FROM counted c, meta m WHERE resource = $1 AND m.id = 1) SELECT states FROM counted";
        const NO_LONGER: &str = "DELETE FROM archived WHERE resource = $1 \
            AND NOT EXISTS (SELECT 1 FROM archive WHERE resource = $1)";
        let pool = &self.reader.pool;
        let mut lent = pool.take().await.map_err(failed)?;
        lent.begin().await.map_err(failed)?;
        let forget =
            sqlx::query_scalar(FORGET).bind(resource).bind(until.unwrap_or(i64::MAX)).bind(STEP_STATES);
        let states = pool.in_time(forget.fetch_one(&mut *lent)).await.map_err(failed)?;
        if until.is_none() {
            let no_longer = sqlx::query(NO_LONGER).bind(resource).execute(&mut *lent);
            pool.in_time(no_longer).await.map_err(failed)?;
        }
        lent.commit().await.map_err(failed)?;
        Ok(states)
    }
}
