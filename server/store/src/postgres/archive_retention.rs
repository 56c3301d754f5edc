//! Retention of the archive: deletes states older than the retention of their resource, then the oldest states above the size
//! limit. Runs with each compaction, in every control service; work that another one has done is not repeated.

use super::compaction::Compactor;
use super::failure::store_error;
use super::row;
use crate::copy::{ArchiveCursor, CopySource};
use crate::error::StoreError;
use crate::reseal::{self, ResealProgress, ResealedState};
use crate::unix_time::{self, subtract};

/// Maximum number of states that one step deletes.
const STEP_STATES: i64 = 1_000;

impl Compactor {
    /// Returns the archived resources, as named in columns.
    pub(super) fn archived_resources(&self) -> Vec<String> {
        if self.archive.is_empty() {
            return Vec::new();
        }
        let resources = self.reader.cache.resources().into_values();
        resources.filter(|r| self.archive.retention(r).is_some()).map(|r| r.to_string()).collect()
    }

    /// Records which resources are archived, so that copies know it before the log deletes their history. Waits for a
    /// concurrent sweep, which may not have seen the entries: the archive of a new resource is complete after that sweep.
    pub(super) async fn note_archived(&self) -> Result<(), StoreError> {
        const NOTE: &str = "INSERT INTO archived (resource, since) SELECT r, s.revision FROM unnest($1::text[]) r, swept s \
            WHERE s.id = 1 AND NOT EXISTS (SELECT 1 FROM archived d WHERE d.resource = r) FOR SHARE OF s \
            ON CONFLICT DO NOTHING";
        let archived = self.archived_resources();
        if archived.is_empty() {
            return Ok(());
        }
        let pool = &self.reader.pool;
        let mut connection = pool.acquire().await.map_err(store_error)?;
        connection.begin().await.map_err(store_error)?;
        let noted = sqlx::query(NOTE).bind(archived).execute(&mut *connection);
        pool.with_timeout(noted).await.map_err(store_error)?;
        connection.commit().await.map_err(store_error)
    }

    /// Deletes states that exceed the retention or the size limit.
    pub(super) async fn enforce_archive_limits(&self) -> Result<(), StoreError> {
        self.note_archived().await?;
        let archived = sqlx::query_scalar("SELECT resource FROM archived ORDER BY resource");
        let archived = self.reader.pool.read(async |c| archived.fetch_all(c).await);
        let archived: Vec<String> = archived.await.map_err(store_error)?;
        for resource in &archived {
            let until = match self.archive.retention(&row::resource(resource)) {
                Some(kept) => Some(self.reader.revision_at(subtract(unix_time::now(), kept)).await?),
                None => None,
            };
            while self.delete_expired(resource, until).await? == STEP_STATES {}
        }
        let limit = i64::try_from(self.archive_max_bytes).unwrap_or(i64::MAX);
        while self.archive_bytes().await? > limit {
            let Some(resource) = self.resource_of_oldest().await? else { break };
            self.delete_expired(&resource, Some(i64::MAX)).await?;
        }
        Ok(())
    }

    /// Renews the seals of the next part of the log and the archive after a cursor.
    pub(super) async fn reseal(
        &self,
        source: &dyn CopySource,
        until: i64,
        after: ArchiveCursor,
    ) -> Result<ResealProgress, StoreError> {
        // The sweep of compacted history runs later, and archives the resources that are recorded by then.
        if after == ArchiveCursor::default() {
            self.note_archived().await?;
        }
        reseal::step(source, &self.reader.seal, until, after, async |values| self.replace(values).await).await
    }

    /// Replaces the values of past states in one transaction. The second statement finds a row that was swept from the log in the
    /// meantime. Deleted states stay deleted.
    async fn replace(&self, values: Vec<ResealedState>) -> Result<(), StoreError> {
        const LOG: &str = "UPDATE log t SET value = s.value FROM unnest($1::bigint[], $2::bytea[]) s (revision, value) \
            WHERE t.revision = s.revision";
        const ARCHIVE: &str = "UPDATE archive t SET value = s.value, bytes = octet_length(s.value) \
            FROM unnest($1::bigint[], $2::bytea[]) s (revision, value) WHERE t.revision = s.revision";
        let (revisions, values): (Vec<i64>, Vec<Vec<u8>>) = values.into_iter().unzip();
        let pool = &self.reader.pool;
        let mut connection = pool.acquire().await.map_err(store_error)?;
        connection.begin().await.map_err(store_error)?;
        for statement in [LOG, ARCHIVE] {
            let replace = sqlx::query(statement).bind(&revisions).bind(&values).execute(&mut *connection);
            pool.with_timeout(replace).await.map_err(store_error)?;
        }
        connection.commit().await.map_err(store_error)
    }

    /// Returns the size of the archive in bytes, from an index.
    async fn archive_bytes(&self) -> Result<i64, StoreError> {
        let sum = sqlx::query_scalar("SELECT coalesce(sum(bytes), 0)::bigint FROM archive");
        let bytes = self.reader.pool.read(async |c| sum.fetch_one(c).await).await.map_err(store_error)?;
        self.reader.metrics.archive_bytes.set(bytes);
        Ok(bytes)
    }

    /// Returns the resource of the state that was superseded first.
    async fn resource_of_oldest(&self) -> Result<Option<String>, StoreError> {
        const OLDEST: &str = "SELECT resource FROM archive ORDER BY until, revision LIMIT 1";
        let oldest = sqlx::query_scalar(OLDEST);
        self.reader.pool.read(async |c| oldest.fetch_optional(c).await).await.map_err(store_error)
    }

    /// Deletes the oldest states of a resource that were superseded up to a revision, at most [`STEP_STATES`]. Returns their
    /// number. `None` deletes all states, for a resource that is no longer archived.
    async fn delete_expired(&self, resource: &str, until: Option<i64>) -> Result<i64, StoreError> {
        const FORGET: &str = "WITH gone AS (DELETE FROM archive WHERE revision IN (SELECT revision FROM archive \
            WHERE resource = $1 AND until <= $2 ORDER BY until LIMIT $3) RETURNING until), \
            counted AS (SELECT count(*) AS states, max(until) AS last FROM gone), \
            noted AS (UPDATE archived SET since = greatest(since, \
            CASE WHEN c.states = $3 THEN c.last ELSE least($2, m.compacted) END) \
            FROM counted c, meta m WHERE resource = $1 AND m.id = 1) SELECT states FROM counted";
        const NO_LONGER: &str = "DELETE FROM archived WHERE resource = $1 \
            AND NOT EXISTS (SELECT 1 FROM archive WHERE resource = $1)";
        let pool = &self.reader.pool;
        let mut connection = pool.acquire().await.map_err(store_error)?;
        connection.begin().await.map_err(store_error)?;
        let forget =
            sqlx::query_scalar(FORGET).bind(resource).bind(until.unwrap_or(i64::MAX)).bind(STEP_STATES);
        let states = pool.with_timeout(forget.fetch_one(&mut *connection)).await.map_err(store_error)?;
        if until.is_none() {
            let no_longer = sqlx::query(NO_LONGER).bind(resource).execute(&mut *connection);
            pool.with_timeout(no_longer).await.map_err(store_error)?;
        }
        connection.commit().await.map_err(store_error)?;
        Ok(states)
    }
}
