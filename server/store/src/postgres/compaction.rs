//! Forgets history by age and size. Every control service does so, on a period: what one has done the others find done.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::failure::{self, failed};
use super::open;
use super::pool::Writing;
use super::read::Reader;
use super::settings::PostgresSettings;
use crate::error::StoreError;
use crate::publish::HistoryBytes;
use crate::unix_time::{self, before};

/// Rows that one step looks at.
const STEP_ROWS: i64 = 1_000;

/// A row `l`, with the state `p` that it supersedes and the bytes that go when history up to it is forgotten.
macro_rules! superseded {
    () => {
        "SELECT l.revision, coalesce(octet_length(p.value) - 1, 0) \
         + CASE WHEN l.deleted THEN octet_length(l.value) - 1 ELSE 0 END AS bytes \
         FROM log l LEFT JOIN log p ON p.revision = l.previous AND l.previous > 0 WHERE l.revision > $1"
    };
}

/// Decides what to forget.
pub(super) struct Compactor {
    pub(super) reader: Arc<Reader>,
    pub(super) postgres: PostgresSettings,
    pub(super) history: Arc<HistoryBytes>,
    pub(super) retention: Duration,
    pub(super) max_bytes: u64,
    pub(super) marks_kept: Duration,
    pub(super) interval: Duration,
}

impl Compactor {
    pub(super) async fn run(self: Arc<Self>, closing: CancellationToken) {
        let mut ticks = interval_at(Instant::now() + self.interval, self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut marked = 0;
        let work = async {
            loop {
                ticks.tick().await;
                match self.tick(&mut marked).await {
                    Ok(()) => {}
                    Err(StoreError::Closed) => return,
                    Err(error) => tracing::warn!(%error, "history could not be compacted; tried again later"),
                }
            }
        };
        closing.run_until_cancelled(work).await;
    }

    async fn tick(&self, marked: &mut i64) -> Result<(), StoreError> {
        let now = unix_time::now();
        let until = self.reader.revision_at(before(now, self.retention)).await?;
        self.compact(until).await?;
        let limit = i64::try_from(self.max_bytes).unwrap_or(i64::MAX);
        if self.count().await? > limit {
            self.compact(self.beyond(limit / 4 * 3).await?).await?;
            self.count().await?;
        }
        let revision = self.reader.hub.revision();
        if revision != *marked {
            self.mark(revision, now).await?;
            *marked = revision;
        }
        let metrics = &self.reader.metrics;
        let size = sqlx::query_scalar("SELECT pg_database_size(current_database())");
        match size.fetch_one(&self.reader.pool).await {
            Ok(bytes) => drop(metrics.file_bytes.set(bytes)),
            // Not all that speak the protocol know it.
            Err(error) => {
                tracing::debug!(error = failure::logged(&error), "the size of the database is not known")
            }
        }
        Ok(())
    }

    /// How many bytes of superseded values there are.
    async fn count(&self) -> Result<i64, StoreError> {
        const SELECT: &str =
            concat!("SELECT coalesce(sum(bytes), 0)::bigint FROM (", superseded!(), ") states");
        let select = sqlx::query_scalar(SELECT).bind(self.reader.hub.compacted());
        let bytes = select.fetch_one(&self.reader.pool).await.map_err(failed)?;
        self.history.bytes.store(bytes, Ordering::Relaxed);
        self.reader.metrics.history_bytes.set(bytes);
        Ok(bytes)
    }

    /// Up to which revision history is to be forgotten so that the newest of it, of so many bytes, stays.
    async fn beyond(&self, bytes: i64) -> Result<i64, StoreError> {
        const SELECT: &str = concat!(
            "SELECT coalesce(max(revision), 0) FROM (SELECT revision, sum(bytes) OVER (ORDER BY revision DESC) AS newer FROM (",
            superseded!(),
            ") states) sums WHERE newer > $2"
        );
        let select = sqlx::query_scalar(SELECT).bind(self.reader.hub.compacted()).bind(bytes);
        select.fetch_one(&self.reader.pool).await.map_err(failed)
    }

    async fn mark(&self, revision: i64, now: i64) -> Result<(), StoreError> {
        let insert = "INSERT INTO mark (revision, at) VALUES ($1, $2) ON CONFLICT (revision) DO UPDATE SET at = excluded.at";
        let mut transaction = Writing::begin(&self.reader.pool, &self.postgres).await.map_err(failed)?;
        let insert = sqlx::query(insert).bind(revision).bind(now).execute(transaction.connection()).await;
        insert.map_err(failed)?;
        let forget = "DELETE FROM mark WHERE revision < (SELECT max(revision) FROM mark WHERE at <= $1)";
        let oldest = before(now, self.marks_kept.max(self.retention));
        sqlx::query(forget).bind(oldest).execute(transaction.connection()).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)
    }

    /// Forgets everything before `until`: first the point moves, for everybody, then rows go, in steps.
    pub(super) async fn compact(&self, until: i64) -> Result<i64, StoreError> {
        const MOVE: &str = "UPDATE meta SET compacted = $1 WHERE id = 1 AND compacted < $1";
        let reader = &self.reader;
        let until = until.min(reader.hub.revision());
        if until > reader.hub.compacted() {
            let mut transaction = Writing::begin(&reader.pool, &self.postgres).await.map_err(failed)?;
            let moved = sqlx::query(MOVE).bind(until).execute(transaction.connection()).await;
            moved.map_err(failed)?;
            transaction.commit().await.map_err(failed)?;
        }
        let compacted = open::meta(&reader.pool).await.map_err(failed)?.compacted;
        reader.hub.set_compacted(compacted);
        reader.metrics.compacted.set(compacted);
        while self.sweep(compacted).await? {}
        Ok(compacted)
    }

    /// Removes what some rows have superseded; whether there is more to do.
    async fn sweep(&self, compacted: i64) -> Result<bool, StoreError> {
        const LOCK: &str = "SELECT revision FROM swept WHERE id = 1 FOR UPDATE";
        const NEXT: &str = "SELECT revision FROM log WHERE revision > $1 ORDER BY revision OFFSET $2 LIMIT 1";
        const STATES: &str = "DELETE FROM log p USING log l WHERE p.revision = l.previous AND l.previous > 0 \
            AND l.revision > $1 AND l.revision <= $2";
        const TOMBSTONES: &str = "DELETE FROM log WHERE deleted AND revision > $1 AND revision <= $2";
        let mut transaction = Writing::begin(&self.reader.pool, &self.postgres).await.map_err(failed)?;
        let swept: i64 =
            sqlx::query_scalar(LOCK).fetch_one(transaction.connection()).await.map_err(failed)?;
        if swept >= compacted {
            return Ok(false);
        }
        let next: Option<i64> = sqlx::query_scalar(NEXT)
            .bind(swept)
            .bind(STEP_ROWS)
            .fetch_optional(transaction.connection())
            .await
            .map_err(failed)?;
        let until = next.unwrap_or(compacted).min(compacted);
        for delete in [STATES, TOMBSTONES] {
            sqlx::query(delete)
                .bind(swept)
                .bind(until)
                .execute(transaction.connection())
                .await
                .map_err(failed)?;
        }
        let noted = sqlx::query("UPDATE swept SET revision = $1 WHERE id = 1").bind(until);
        noted.execute(transaction.connection()).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        Ok(until < compacted)
    }
}
