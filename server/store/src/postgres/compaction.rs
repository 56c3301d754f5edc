//! Compaction: deletes history by age and size. Every control service runs it periodically; work that another one has
//! done is not repeated.
//!
//! First the compaction point advances in the database, so that no reader starts before it. The states before it are deleted
//! (swept) after a delay, so that a process that is behind by less can still read them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::clock::{now, revision_at};
use super::failure::{self, store_error};
use super::open;
use super::reader::Reader;
use crate::archive_rules::ArchiveRules;
use crate::error::StoreError;
use crate::publish::HistoryBytes;

/// Number of rows that one step examines.
const STEP_ROWS: i64 = 1_000;
/// Delay before a failed sweep is retried.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Query for the rows `l` of the log, each with the bytes that are freed when history up to the row is deleted: those of the
/// state `p` that the row supersedes, and those of a tombstone.
macro_rules! superseded_sizes {
    () => {
        "SELECT l.revision, coalesce(octet_length(p.value) - 1, 0) \
         + CASE WHEN l.deleted THEN octet_length(l.value) - 1 ELSE 0 END AS bytes \
         FROM log l LEFT JOIN log p ON p.revision = l.previous AND l.previous > 0 WHERE l.revision > $1"
    };
}

/// Statement that inserts the deleted rows of the log (`gone`) into the archive if the rules of any control service archive
/// their resources.
macro_rules! archive_deleted {
    () => {
        "INSERT INTO archive (revision, resource, namespace, name, previous, deleted, until, bytes, value, checksum) \
         SELECT revision, resource, namespace, name, previous, deleted, until, octet_length(value), value, checksum FROM gone \
         WHERE resource IN (SELECT resource FROM archived) ON CONFLICT DO NOTHING"
    };
}

/// Compaction task.
pub(super) struct Compactor {
    pub(super) reader: Arc<Reader>,
    pub(super) history: Arc<HistoryBytes>,
    pub(super) retention: Duration,
    pub(super) max_bytes: u64,
    pub(super) mark_retention: Duration,
    pub(super) archive: ArchiveRules,
    pub(super) archive_max_bytes: u64,
    pub(super) interval: Duration,
    /// Delay between compaction and sweep.
    pub(super) delay: Duration,
    pub(super) pending_sweeps: PendingSweeps,
}

/// Compaction points that are not swept yet.
#[derive(Default)]
pub(super) struct PendingSweeps {
    points: Mutex<SweepPoints>,
    point_added: Notify,
}

#[derive(Default)]
struct SweepPoints {
    /// Greatest point added.
    last: i64,
    /// Points, and times after which they may be swept.
    queue: VecDeque<(i64, Instant)>,
}

impl PendingSweeps {
    /// Adds a point. Processes that are behind can read the states before it until `readable_until`.
    fn add(&self, point: i64, readable_until: Instant) {
        let mut points = self.points.lock();
        if point > points.last {
            points.last = point;
            points.queue.push_back((point, readable_until));
            self.point_added.notify_one();
        }
    }

    /// Waits until the next point may be swept, and returns it. It stays the next one until [`PendingSweeps::done`].
    async fn next(&self) -> i64 {
        loop {
            let first = self.points.lock().queue.front().copied();
            match first {
                Some((point, readable_until)) => {
                    sleep_until(readable_until).await;
                    return point;
                }
                None => self.point_added.notified().await,
            }
        }
    }

    fn done(&self) {
        self.points.lock().queue.pop_front();
    }
}

impl Compactor {
    pub(super) async fn run(self: Arc<Self>, closing: CancellationToken) {
        let work = async { tokio::join!(self.compact_periodically(), self.sweep_all()) };
        closing.run_until_cancelled(work).await;
    }

    async fn compact_periodically(&self) {
        let mut ticks = interval_at(Instant::now() + self.interval, self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut marked_revision = 0;
        if let Err(error) = self.note_archived().await {
            tracing::warn!(%error, "cannot record the resources with retained history, retrying");
        }
        loop {
            ticks.tick().await;
            match self.tick(&mut marked_revision).await {
                Ok(()) => {}
                Err(StoreError::Closed) => return,
                Err(error) => tracing::warn!(%error, "cannot compact the history, retrying"),
            }
        }
    }

    async fn tick(&self, marks_revision: &mut i64) -> Result<(), StoreError> {
        let revision = self.reader.hub.revision();
        if revision != *marks_revision {
            self.delete_marks().await?;
            *marks_revision = revision;
        }
        self.compact(self.retention_limit().await?).await?;
        let limit = i64::try_from(self.max_bytes).unwrap_or(i64::MAX);
        if self.superseded_bytes().await? > limit {
            self.compact(self.size_limit(limit / 4 * 3).await?).await?;
            self.superseded_bytes().await?;
        }
        self.enforce_archive_limits().await?;
        let size = sqlx::query_scalar("SELECT pg_database_size(current_database())");
        match self.reader.pool.read(async |c| size.fetch_one(c).await).await {
            Ok(bytes) => drop(self.reader.metrics.file_bytes.set(bytes)),
            // Some servers with PostgreSQL's protocol do not support this query.
            Err(error) => {
                tracing::debug!(error = failure::log_text(&error), "cannot query the size of the database")
            }
        }
        Ok(())
    }

    /// Returns the newest revision that is older than the retention.
    async fn retention_limit(&self) -> Result<i64, StoreError> {
        const SELECT: &str = concat!("SELECT ", revision_at!(now!(), " - $1"));
        let select = sqlx::query_scalar(SELECT).bind(seconds(self.retention));
        self.reader.pool.read(async |c| select.fetch_one(c).await).await.map_err(store_error)
    }

    /// Returns the size of superseded values in bytes.
    async fn superseded_bytes(&self) -> Result<i64, StoreError> {
        const SELECT: &str =
            concat!("SELECT coalesce(sum(bytes), 0)::bigint FROM (", superseded_sizes!(), ") states");
        let select = sqlx::query_scalar(SELECT).bind(self.reader.hub.compacted());
        let bytes = self.reader.pool.read(async |c| select.fetch_one(c).await).await.map_err(store_error)?;
        self.history.bytes.store(bytes, Ordering::Relaxed);
        self.reader.metrics.history_bytes.set(bytes);
        Ok(bytes)
    }

    /// Returns the revision to compact to so that at most this many bytes of history remain.
    async fn size_limit(&self, bytes: i64) -> Result<i64, StoreError> {
        const SELECT: &str = concat!(
            "SELECT coalesce(max(revision), 0) FROM (SELECT revision, sum(bytes) OVER (ORDER BY revision DESC) AS newer FROM (",
            superseded_sizes!(),
            ") states) sums WHERE newer > $2"
        );
        let select = sqlx::query_scalar(SELECT).bind(self.reader.hub.compacted()).bind(bytes);
        self.reader.pool.read(async |c| select.fetch_one(c).await).await.map_err(store_error)
    }

    /// Deletes expired marks.
    async fn delete_marks(&self) -> Result<(), StoreError> {
        const FORGET: &str = concat!(
            "DELETE FROM mark WHERE revision < (SELECT revision FROM mark WHERE at <= ",
            now!(),
            " - $1 ORDER BY at DESC, revision DESC LIMIT 1)"
        );
        let pool = &self.reader.pool;
        let mut connection = pool.acquire().await.map_err(store_error)?;
        connection.begin().await.map_err(store_error)?;
        let forget = sqlx::query(FORGET).bind(seconds(self.mark_retention.max(self.retention)));
        pool.with_timeout(forget.execute(&mut *connection)).await.map_err(store_error)?;
        connection.commit().await.map_err(store_error)
    }

    /// Advances the compaction point of the database to `until`. The sweep runs later.
    pub(super) async fn compact(&self, until: i64) -> Result<i64, StoreError> {
        const MOVE: &str = "UPDATE meta SET compacted = $1 WHERE id = 1 AND compacted < $1";
        let reader = &self.reader;
        let until = until.min(reader.hub.revision());
        let mut connection = reader.pool.acquire().await.map_err(store_error)?;
        connection.begin().await.map_err(store_error)?;
        if until > reader.hub.compacted() {
            let moved = sqlx::query(MOVE).bind(until).execute(&mut *connection);
            reader.pool.with_timeout(moved).await.map_err(store_error)?;
        }
        let compacted =
            reader.pool.with_timeout(open::meta(&mut connection)).await.map_err(store_error)?.compacted;
        connection.commit().await.map_err(store_error)?;
        reader.hub.set_compacted(compacted.min(reader.hub.revision()));
        reader.metrics.compacted.set(compacted);
        self.pending_sweeps.add(compacted, Instant::now() + self.delay);
        Ok(compacted)
    }

    /// Sweeps points when their time has come.
    async fn sweep_all(&self) {
        loop {
            let point = self.pending_sweeps.next().await;
            match self.sweep_to(point).await {
                Ok(()) => self.pending_sweeps.done(),
                Err(StoreError::Closed) => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot delete compacted history, retrying");
                    sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    async fn sweep_to(&self, point: i64) -> Result<(), StoreError> {
        while self.sweep(point).await? {}
        Ok(())
    }

    /// Deletes states that a page of rows has superseded. Returns true if more work remains.
    async fn sweep(&self, compacted: i64) -> Result<bool, StoreError> {
        const LOCK: &str = "SELECT revision FROM swept WHERE id = 1 FOR UPDATE";
        const NEXT: &str = "SELECT revision FROM log WHERE revision > $1 ORDER BY revision OFFSET $2 LIMIT 1";
        const STATES: &str = concat!(
            "WITH gone AS (DELETE FROM log p USING log l WHERE p.revision = l.previous AND l.previous > 0 \
            AND l.revision > $1 AND l.revision <= $2 RETURNING p.*, l.revision AS until) ",
            archive_deleted!()
        );
        const TOMBSTONES: &str = concat!(
            "WITH gone AS (DELETE FROM log WHERE deleted AND revision > $1 AND revision <= $2 \
            RETURNING *, revision AS until) ",
            archive_deleted!()
        );
        const ARCHIVED: &str =
            "INSERT INTO archived (resource, since) SELECT unnest($1::text[]), $2 ON CONFLICT DO NOTHING";
        let archived = self.archived_resources();
        let pool = &self.reader.pool;
        let mut connection = pool.acquire().await.map_err(store_error)?;
        connection.begin().await.map_err(store_error)?;
        let locked = sqlx::query_scalar(LOCK).fetch_one(&mut *connection);
        let swept: i64 = pool.with_timeout(locked).await.map_err(store_error)?;
        if swept >= compacted {
            connection.commit().await.map_err(store_error)?;
            return Ok(false);
        }
        let next = sqlx::query_scalar(NEXT).bind(swept).bind(STEP_ROWS).fetch_optional(&mut *connection);
        let next: Option<i64> = pool.with_timeout(next).await.map_err(store_error)?;
        let until = next.unwrap_or(compacted).min(compacted);
        if !archived.is_empty() {
            let noted = sqlx::query(ARCHIVED).bind(&archived).bind(swept).execute(&mut *connection);
            pool.with_timeout(noted).await.map_err(store_error)?;
        }
        for delete in [STATES, TOMBSTONES] {
            let delete = sqlx::query(delete).bind(swept).bind(until).execute(&mut *connection);
            pool.with_timeout(delete).await.map_err(store_error)?;
        }
        let noted = sqlx::query("UPDATE swept SET revision = $1 WHERE id = 1").bind(until);
        pool.with_timeout(noted.execute(&mut *connection)).await.map_err(store_error)?;
        connection.commit().await.map_err(store_error)?;
        Ok(until < compacted)
    }
}

fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}
