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
use super::failure::{self, failed};
use super::open;
use super::read::Reader;
use crate::archive_rules::ArchiveRules;
use crate::error::StoreError;
use crate::publish::HistoryBytes;

/// Number of rows that one step examines.
const STEP_ROWS: i64 = 1_000;
/// Delay before a failed sweep is retried.
const RETRY: Duration = Duration::from_secs(5);

/// Row `l`, the state `p` that it supersedes, and the bytes that are freed when history up to the row is deleted.
macro_rules! superseded {
    () => {
        "SELECT l.revision, coalesce(octet_length(p.value) - 1, 0) \
         + CASE WHEN l.deleted THEN octet_length(l.value) - 1 ELSE 0 END AS bytes \
         FROM log l LEFT JOIN log p ON p.revision = l.previous AND l.previous > 0 WHERE l.revision > $1"
    };
}

/// Moves the rows `gone` from the log to the archive if their resources are archived, by the rules of any control service.
macro_rules! archive_gone {
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
    pub(super) marks_kept: Duration,
    pub(super) archive: ArchiveRules,
    pub(super) archive_max_bytes: u64,
    pub(super) interval: Duration,
    /// Delay between compaction and sweep.
    pub(super) delay: Duration,
    pub(super) unswept: Unswept,
}

/// Compaction points that are not swept yet.
#[derive(Default)]
pub(super) struct Unswept {
    points: Mutex<Points>,
    more: Notify,
}

#[derive(Default)]
struct Points {
    /// Greatest point added.
    last: i64,
    /// Points, and times after which they may be swept.
    waiting: VecDeque<(i64, Instant)>,
}

impl Unswept {
    /// Adds a point. Processes that are behind can read the states before it until `at`.
    fn add(&self, point: i64, at: Instant) {
        let mut points = self.points.lock();
        if point > points.last {
            points.last = point;
            points.waiting.push_back((point, at));
            self.more.notify_one();
        }
    }

    /// Waits until the next point may be swept, and returns it. It stays the next one until [`PendingSweeps::done`].
    async fn next(&self) -> i64 {
        loop {
            let first = self.points.lock().waiting.front().copied();
            match first {
                Some((point, at)) => {
                    sleep_until(at).await;
                    return point;
                }
                None => self.more.notified().await,
            }
        }
    }

    fn done(&self) {
        self.points.lock().waiting.pop_front();
    }
}

impl Compactor {
    pub(super) async fn run(self: Arc<Self>, closing: CancellationToken) {
        let work = async { tokio::join!(self.forget(), self.sweep_all()) };
        closing.run_until_cancelled(work).await;
    }

    async fn forget(&self) {
        let mut ticks = interval_at(Instant::now() + self.interval, self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut marked = 0;
        if let Err(error) = self.note_archived().await {
            tracing::warn!(%error, "cannot record the resources with retained history, retrying");
        }
        loop {
            ticks.tick().await;
            match self.tick(&mut marked).await {
                Ok(()) => {}
                Err(StoreError::Closed) => return,
                Err(error) => tracing::warn!(%error, "cannot compact the history, retrying"),
            }
        }
    }

    async fn tick(&self, marked: &mut i64) -> Result<(), StoreError> {
        let revision = self.reader.hub.revision();
        if revision != *marked {
            self.forget_marks().await?;
            *marked = revision;
        }
        self.compact(self.aged().await?).await?;
        let limit = i64::try_from(self.max_bytes).unwrap_or(i64::MAX);
        if self.count().await? > limit {
            self.compact(self.beyond(limit / 4 * 3).await?).await?;
            self.count().await?;
        }
        self.tend_archive().await?;
        let size = sqlx::query_scalar("SELECT pg_database_size(current_database())");
        match self.reader.pool.read(async |c| size.fetch_one(c).await).await {
            Ok(bytes) => drop(self.reader.metrics.file_bytes.set(bytes)),
            // Some servers with PostgreSQL's protocol do not support this query.
            Err(error) => {
                tracing::debug!(error = failure::logged(&error), "cannot query the size of the database")
            }
        }
        Ok(())
    }

    /// Returns the newest revision that is older than the retention.
    async fn aged(&self) -> Result<i64, StoreError> {
        const SELECT: &str = concat!("SELECT ", revision_at!(now!(), " - $1"));
        let select = sqlx::query_scalar(SELECT).bind(seconds(self.retention));
        self.reader.pool.read(async |c| select.fetch_one(c).await).await.map_err(failed)
    }

    /// Returns the size of superseded values in bytes.
    async fn count(&self) -> Result<i64, StoreError> {
        const SELECT: &str =
            concat!("SELECT coalesce(sum(bytes), 0)::bigint FROM (", superseded!(), ") states");
        let select = sqlx::query_scalar(SELECT).bind(self.reader.hub.compacted());
        let bytes = self.reader.pool.read(async |c| select.fetch_one(c).await).await.map_err(failed)?;
        self.history.bytes.store(bytes, Ordering::Relaxed);
        self.reader.metrics.history_bytes.set(bytes);
        Ok(bytes)
    }

    /// Returns the revision to compact to so that at most this many bytes of history remain.
    async fn beyond(&self, bytes: i64) -> Result<i64, StoreError> {
        const SELECT: &str = concat!(
            "SELECT coalesce(max(revision), 0) FROM (SELECT revision, sum(bytes) OVER (ORDER BY revision DESC) AS newer FROM (",
            superseded!(),
            ") states) sums WHERE newer > $2"
        );
        let select = sqlx::query_scalar(SELECT).bind(self.reader.hub.compacted()).bind(bytes);
        self.reader.pool.read(async |c| select.fetch_one(c).await).await.map_err(failed)
    }

    /// Deletes expired marks.
    async fn forget_marks(&self) -> Result<(), StoreError> {
        const FORGET: &str = concat!(
            "DELETE FROM mark WHERE revision < (SELECT revision FROM mark WHERE at <= ",
            now!(),
            " - $1 ORDER BY at DESC, revision DESC LIMIT 1)"
        );
        let pool = &self.reader.pool;
        let mut lent = pool.take().await.map_err(failed)?;
        lent.begin().await.map_err(failed)?;
        let forget = sqlx::query(FORGET).bind(seconds(self.marks_kept.max(self.retention)));
        pool.in_time(forget.execute(&mut *lent)).await.map_err(failed)?;
        lent.commit().await.map_err(failed)
    }

    /// Advances the compaction point of the database to `until`. The sweep runs later.
    pub(super) async fn compact(&self, until: i64) -> Result<i64, StoreError> {
        const MOVE: &str = "UPDATE meta SET compacted = $1 WHERE id = 1 AND compacted < $1";
        let reader = &self.reader;
        let until = until.min(reader.hub.revision());
        let mut lent = reader.pool.take().await.map_err(failed)?;
        lent.begin().await.map_err(failed)?;
        if until > reader.hub.compacted() {
            let moved = sqlx::query(MOVE).bind(until).execute(&mut *lent);
            reader.pool.in_time(moved).await.map_err(failed)?;
        }
        let compacted = reader.pool.in_time(open::meta(&mut lent)).await.map_err(failed)?.compacted;
        lent.commit().await.map_err(failed)?;
        reader.hub.set_compacted(compacted.min(reader.hub.revision()));
        reader.metrics.compacted.set(compacted);
        self.unswept.add(compacted, Instant::now() + self.delay);
        Ok(compacted)
    }

    /// Sweeps points when their time has come.
    async fn sweep_all(&self) {
        loop {
            let point = self.unswept.next().await;
            match self.sweep_to(point).await {
                Ok(()) => self.unswept.done(),
                Err(StoreError::Closed) => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot delete compacted history, retrying");
                    sleep(RETRY).await;
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
            archive_gone!()
        );
        const TOMBSTONES: &str = concat!(
            "WITH gone AS (DELETE FROM log WHERE deleted AND revision > $1 AND revision <= $2 \
            RETURNING *, revision AS until) ",
            archive_gone!()
        );
        const ARCHIVED: &str =
            "INSERT INTO archived (resource, since) SELECT unnest($1::text[]), $2 ON CONFLICT DO NOTHING";
        let archived = self.archived();
        let pool = &self.reader.pool;
        let mut lent = pool.take().await.map_err(failed)?;
        lent.begin().await.map_err(failed)?;
        let locked = sqlx::query_scalar(LOCK).fetch_one(&mut *lent);
        let swept: i64 = pool.in_time(locked).await.map_err(failed)?;
        if swept >= compacted {
            lent.commit().await.map_err(failed)?;
            return Ok(false);
        }
        let next = sqlx::query_scalar(NEXT).bind(swept).bind(STEP_ROWS).fetch_optional(&mut *lent);
        let next: Option<i64> = pool.in_time(next).await.map_err(failed)?;
        let until = next.unwrap_or(compacted).min(compacted);
        if !archived.is_empty() {
            let noted = sqlx::query(ARCHIVED).bind(&archived).bind(swept).execute(&mut *lent);
            pool.in_time(noted).await.map_err(failed)?;
        }
        for delete in [STATES, TOMBSTONES] {
            let delete = sqlx::query(delete).bind(swept).bind(until).execute(&mut *lent);
            pool.in_time(delete).await.map_err(failed)?;
        }
        let noted = sqlx::query("UPDATE swept SET revision = $1 WHERE id = 1").bind(until);
        pool.in_time(noted.execute(&mut *lent)).await.map_err(failed)?;
        lent.commit().await.map_err(failed)?;
        Ok(until < compacted)
    }
}

fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}
