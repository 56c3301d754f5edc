//! Small pieces of work for the writer: forgetting history, giving pages back, cutting the log.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};
use tokio::sync::oneshot;

use super::archiving;
use super::history::PREVIOUS;
use super::space::Space;
use super::statement::{self, Batch as Statements};
use crate::archive_rules::ArchiveRules;
use crate::error::StoreError;
use crate::publish::Publisher;
use crate::reseal::Resealed;

/// How long a statement waits for a lock that somebody else holds.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Revisions that one step looks at.
pub(super) const STEP_REVISIONS: i64 = 1_000;

/// Writes a page as it is; SQLite writes none for an update that changes nothing.
pub(super) const SAME_PAGE: &str = "BEGIN IMMEDIATE; UPDATE meta SET revision = revision + 1 WHERE id = 1; \
    UPDATE meta SET revision = revision - 1 WHERE id = 1; COMMIT";

/// Pages that one step gives back.
const STEP_PAGES: i64 = 500;

/// Free pages that are kept for the next writes (1 MiB).
const SPARE_PAGES: i64 = 256;

/// A small piece of work for the writer.
pub(crate) struct Maintenance {
    pub(crate) step: Step,
    pub(crate) reply: oneshot::Sender<Result<i64, StoreError>>,
}

pub(crate) enum Step {
    /// Forget history, at most up to this revision. Answers the new compaction point.
    Compact(i64),
    /// Give free pages back. Answers how many are left to give.
    Vacuum,
    /// Copy the log into the file and cut it to the size of the reserve; on a full disk the log stays as long as it is. Answers 1 when
    /// a reader needs it, and it was not cut; else 0.
    Checkpoint,
    /// Forget the marks before a time (Unix seconds), but for the last of them. Answers 0.
    ForgetMarks { oldest: i64 },
    /// Note of which resources history is kept longer. Answers 0.
    Archive,
    /// Forget archived states of a resource, by its number, that were superseded up to a revision; all of a resource that is archived no
    /// longer. Answers how many.
    Forget { resource: i64, until: Option<i64> },
    /// Replace the values of archived states by what is the same, sealed otherwise. Answers 0.
    Reseal(Vec<Resealed>),
    /// End the lack of space, if there is space again. Answers 0.
    Relax,
}

impl Maintenance {
    /// Does the work.
    pub(crate) async fn run(
        &self,
        connection: &mut SqliteConnection,
        compacted: &mut i64,
        revision: i64,
        publisher: &Publisher,
        space: &Space,
        archive: &ArchiveRules,
    ) -> Result<i64, sqlx::Error> {
        match &self.step {
            Step::Compact(until) => {
                let until = (*until).min(revision).min(compacted.saturating_add(STEP_REVISIONS));
                let archive = space.full().is_none().then_some(archive);
                compact(connection, compacted, until, publisher, archive.map(|archive| (archive, space)))
                    .await
            }
            Step::Archive => note(connection, &archived(archive, publisher), *compacted, space).await,
            Step::Forget { resource, until } => {
                archiving::forget(connection, *resource, *until, *compacted).await
            }
            Step::Reseal(values) => archiving::replace(connection, values, space).await.map(|()| 0),
            Step::Vacuum if space.full().is_some() => short_vacuum(connection, space.vacuum_pages()).await,
            Step::Vacuum => vacuum(connection, STEP_PAGES).await,
            Step::Checkpoint if space.full().is_some() => restart(connection).await.map(|_| 1),
            Step::Checkpoint => cut(connection, space).await,
            Step::Relax => space.relax(connection).await.map(|()| 0),
            Step::ForgetMarks { oldest } => forget_marks(connection, *oldest, space).await,
        }
    }
}

/// Forgets history up to a revision; without an archive that of all resources, including those with a longer retention.
///
/// A state is forgotten when it was superseded up to `until`, a tombstone when it was written up to there. The point moves
/// first, so that a reader that finds it unmoved after reading has read everything.
pub(super) async fn compact(
    connection: &mut SqliteConnection,
    compacted: &mut i64,
    until: i64,
    publisher: &Publisher,
    archive: Option<(&ArchiveRules, &Space)>,
) -> Result<i64, sqlx::Error> {
    if until <= *compacted {
        return Ok(*compacted);
    }
    publisher.hub.set_compacted(until);
    let mut batch = Statements::default();
    batch.statement("BEGIN IMMEDIATE");
    match archive {
        Some((archive, _)) => archiving::keep(&mut batch, &archived(archive, publisher), *compacted, until)?,
        None => archiving::lose(&mut batch, until)?,
    }
    forget(&mut batch, *compacted, until)?;
    let rows = commit(connection, batch, archive.map(|(_, space)| space)).await?;
    *compacted = until;
    // Less the format byte, which the count of superseded states excludes.
    let freed =
        rows.iter().map(|row| row.try_get::<i64, _>(0).map(|length| length - 1)).sum::<Result<i64, _>>()?;
    publisher.history.bytes.fetch_sub(freed, Ordering::Relaxed);
    Ok(until)
}

/// The statements that forget the history of a range of revisions, and move the compaction point.
pub(super) fn forget(batch: &mut Statements, from: i64, until: i64) -> Result<(), sqlx::Error> {
    batch.statement(&format!(
        "DELETE FROM log WHERE revision IN (SELECT p.revision FROM log l JOIN log p ON {PREVIOUS} \
         WHERE l.revision > ? AND l.revision <= ?) RETURNING length(value)"
    ));
    // A tombstone whose key or chain is damaged may stand over a state that is kept, which must not come back.
    batch.statement(
        "DELETE FROM log WHERE revision > ? AND revision <= ? AND deleted = 1 AND NOT EXISTS (SELECT 1 FROM log o \
         WHERE o.resource = log.resource AND o.namespace = log.namespace AND o.name = log.name \
         AND o.revision < log.revision AND o.deleted = 0) RETURNING length(value)",
    );
    for _ in 0..2 {
        batch.bind(from)?;
        batch.bind(until)?;
    }
    batch.statement("UPDATE meta SET compacted = ? WHERE id = 1");
    batch.bind(until)
}

async fn note(
    connection: &mut SqliteConnection,
    resources: &str,
    compacted: i64,
    space: &Space,
) -> Result<i64, sqlx::Error> {
    let mut batch = Statements::default();
    batch.statement("BEGIN IMMEDIATE");
    archiving::note(&mut batch, resources, compacted)?;
    commit(connection, batch, Some(space)).await.map(|_| 0)
}

/// Runs a transaction that has begun, extends the file to the pages that it adds, and commits it; rolls back after an error.
async fn commit(
    connection: &mut SqliteConnection,
    batch: Statements,
    space: Option<&Space>,
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    let committed = async {
        let rows = batch.fetch(&mut *connection).await?;
        if let Some(space) = space {
            space.cover_written(&mut *connection).await?;
        }
        sqlx::query("COMMIT").execute(&mut *connection).await?;
        Ok(rows)
    };
    let committed = committed.await;
    if committed.is_err() {
        statement::rollback(connection).await;
    }
    committed
}

/// The numbers of the resources whose history is kept longer, joined by commas.
fn archived(archive: &ArchiveRules, publisher: &Publisher) -> String {
    if archive.is_empty() {
        return String::new();
    }
    let mut resources = publisher.cache.resources();
    resources.retain(|_, resource| archive.of(resource).is_some());
    let numbers: Vec<String> = resources.keys().map(ToString::to_string).collect();
    numbers.join(",")
}

async fn vacuum(connection: &mut SqliteConnection, step: i64) -> Result<i64, sqlx::Error> {
    let free: i64 = sqlx::query_scalar("PRAGMA freelist_count").fetch_one(&mut *connection).await?;
    if free <= SPARE_PAGES {
        return Ok(0);
    }
    let pages = (free - SPARE_PAGES).min(step);
    let pragma = sqlx::AssertSqlSafe(format!("PRAGMA incremental_vacuum({pages})"));
    sqlx::query(pragma).fetch_all(connection).await?;
    Ok(free - SPARE_PAGES - pages)
}

/// Copies the log into the file and cuts it to the size of the reserve. Returns 1 if a reader needs it.
async fn cut(connection: &mut SqliteConnection, space: &Space) -> Result<i64, sqlx::Error> {
    if !restart(connection).await? {
        return Ok(1);
    }
    let write = async |connection: &mut SqliteConnection| {
        let written = sqlx::raw_sql(SAME_PAGE).execute(&mut *connection).await;
        if written.is_err() {
            statement::rollback(connection).await;
        }
        written.map(drop)
    };
    space.cut_log(connection, write).await.map(|is_cut| i64::from(!is_cut))
}

/// Gives free pages back on a full disk, in parts that the log has blocks for.
async fn short_vacuum(connection: &mut SqliteConnection, step: i64) -> Result<i64, sqlx::Error> {
    restart(connection).await?;
    let left = vacuum(connection, step).await?;
    restart(connection).await?;
    Ok(left)
}

/// Copies the log into the file and lets the next write begin at its start, without giving back its blocks; returns false if
/// a reader needs it.
pub(super) async fn restart(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    checkpoint(connection, "RESTART").await.map(|busy| busy == 0)
}

/// Copies pages and restarts or cuts the log if no reader needs it. Writes wait for this, so it does not wait for readers. The next
/// checkpoint copies the remaining pages.
async fn checkpoint(connection: &mut SqliteConnection, mode: &str) -> Result<i64, sqlx::Error> {
    let busy_timeout = BUSY_TIMEOUT.as_millis();
    sqlx::query("PRAGMA busy_timeout = 0").execute(&mut *connection).await?;
    let checkpoint = sqlx::AssertSqlSafe(format!("PRAGMA wal_checkpoint({mode})"));
    let busy = sqlx::query_scalar(checkpoint).fetch_one(&mut *connection).await;
    let restore = sqlx::AssertSqlSafe(format!("PRAGMA busy_timeout = {busy_timeout}"));
    sqlx::query(restore).execute(connection).await?;
    busy
}

async fn forget_marks(
    connection: &mut SqliteConnection,
    oldest: i64,
    space: &Space,
) -> Result<i64, sqlx::Error> {
    let mut batch = Statements::default();
    batch.statement("BEGIN IMMEDIATE");
    batch.statement(
        "DELETE FROM mark WHERE revision < (SELECT revision FROM mark WHERE at <= ? \
         ORDER BY at DESC, revision DESC LIMIT 1)",
    );
    batch.bind(oldest)?;
    commit(connection, batch, Some(space)).await.map(|_| 0)
}
