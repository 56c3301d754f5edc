//! Small maintenance steps of the writer: deleting history, releasing pages, cutting the log.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};
use tokio::sync::oneshot;

use super::archive_writes;
use super::history::PREVIOUS;
use super::space::Space;
use super::statement::{self, StatementBatch as Statements};
use crate::archive_rules::ArchiveRules;
use crate::error::StoreError;
use crate::publish::Publisher;
use crate::reseal::ResealedState;

/// Maximum wait of a statement for a lock of another connection.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Number of revisions that one step examines.
pub(super) const STEP_REVISIONS: i64 = 1_000;

/// Writes an unchanged page; SQLite skips an update that changes nothing.
pub(super) const REWRITE_PAGE: &str = "BEGIN IMMEDIATE; UPDATE meta SET revision = revision + 1 WHERE id = 1; \
    UPDATE meta SET revision = revision - 1 WHERE id = 1; COMMIT";

/// Number of pages that one step releases.
const STEP_PAGES: i64 = 500;

/// Number of free pages that stay for the next writes (1 MiB).
const SPARE_PAGES: i64 = 256;

/// Maintenance step for the writer.
pub(crate) struct Maintenance {
    pub(crate) step: Step,
    pub(crate) reply: oneshot::Sender<Result<i64, StoreError>>,
}

pub(crate) enum Step {
    /// Deletes history up to at most this revision. Returns the new compaction point.
    Compact(i64),
    /// Releases free pages. Returns the number of pages that remain to be released.
    Vacuum,
    /// Checkpoints the log and cuts it to the size of the reserve; on a full disk the log keeps its length. Returns 1 if a reader
    /// prevented it, otherwise 0.
    Checkpoint,
    /// Deletes the marks before a time (Unix seconds), except the last of them. Returns 0.
    DeleteMarks { oldest: i64 },
    /// Records the archived resources. Returns 0.
    NoteArchived,
    /// Deletes archived states of a resource, by ID, that were superseded up to a revision; `None` deletes all states of a
    /// resource that is no longer archived. Returns their number.
    DeleteArchived { resource: i64, until: Option<i64> },
    /// Replaces values of archived states by the same values with another seal. Returns 0.
    Reseal(Vec<ResealedState>),
    /// Ends the delete-only mode if space is available again. Returns 0.
    LeaveDeleteOnly,
}

impl Maintenance {
    /// Runs the step.
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
                let archive = space.delete_only_reason().is_none().then_some(archive);
                compact(connection, compacted, until, publisher, archive.map(|archive| (archive, space)))
                    .await
            }
            Step::NoteArchived => {
                note_archived(connection, &archived_ids(archive, publisher), *compacted, space).await
            }
            Step::DeleteArchived { resource, until } => {
                archive_writes::delete_expired(connection, *resource, *until, *compacted).await
            }
            Step::Reseal(values) => archive_writes::replace(connection, values, space).await.map(|()| 0),
            Step::Vacuum if space.delete_only_reason().is_some() => {
                vacuum_on_full_disk(connection, space.vacuum_pages()).await
            }
            Step::Vacuum => vacuum(connection, STEP_PAGES).await,
            Step::Checkpoint if space.delete_only_reason().is_some() => {
                restart_log(connection).await.map(|_| 1)
            }
            Step::Checkpoint => cut_log(connection, space).await,
            Step::LeaveDeleteOnly => space.leave_delete_only(connection).await.map(|()| 0),
            Step::DeleteMarks { oldest } => delete_marks(connection, *oldest, space).await,
        }
    }
}

/// Deletes history up to a revision. Without `archive`, this includes the history of archived resources.
///
/// Deletes states that were superseded up to `until`, and tombstones written up to there. The compaction point moves
/// first, so a reader that finds it unchanged after reading has read everything.
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
        Some((archive, _)) => {
            archive_writes::archive_range(&mut batch, &archived_ids(archive, publisher), *compacted, until)?
        }
        None => archive_writes::note_discarded(&mut batch, until)?,
    }
    delete_history(&mut batch, *compacted, until)?;
    let rows = commit(connection, batch, archive.map(|(_, space)| space)).await?;
    *compacted = until;
    // Without the format byte, which the size of superseded states excludes.
    let freed =
        rows.iter().map(|row| row.try_get::<i64, _>(0).map(|length| length - 1)).sum::<Result<i64, _>>()?;
    publisher.history.bytes.fetch_sub(freed, Ordering::Relaxed);
    Ok(until)
}

/// Appends the statements that delete the history of a range of revisions and move the compaction point.
pub(super) fn delete_history(batch: &mut Statements, from: i64, until: i64) -> Result<(), sqlx::Error> {
    batch.statement(&format!(
        "DELETE FROM log WHERE revision IN (SELECT p.revision FROM log l JOIN log p ON {PREVIOUS} \
         WHERE l.revision > ? AND l.revision <= ?) RETURNING length(value)"
    ));
    // A tombstone with a damaged key or chain may hide a state that is not deleted and must not reappear.
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

async fn note_archived(
    connection: &mut SqliteConnection,
    resources: &str,
    compacted: i64,
    space: &Space,
) -> Result<i64, sqlx::Error> {
    let mut batch = Statements::default();
    batch.statement("BEGIN IMMEDIATE");
    archive_writes::note_archived(&mut batch, resources, compacted)?;
    commit(connection, batch, Some(space)).await.map(|_| 0)
}

/// Runs a transaction that was begun, extends the file to the pages that it adds, and commits it. Rolls back after an error.
async fn commit(
    connection: &mut SqliteConnection,
    batch: Statements,
    space: Option<&Space>,
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    let committed = async {
        let rows = batch.fetch(&mut *connection).await?;
        if let Some(space) = space {
            space.extend_for_transaction(&mut *connection).await?;
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

/// Returns the IDs of the archived resources, joined by commas.
fn archived_ids(archive: &ArchiveRules, publisher: &Publisher) -> String {
    if archive.is_empty() {
        return String::new();
    }
    let mut resources = publisher.cache.resources();
    resources.retain(|_, resource| archive.retention(resource).is_some());
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

/// Checkpoints the log and cuts it to the size of the reserve. Returns 1 if a reader prevented it.
async fn cut_log(connection: &mut SqliteConnection, space: &Space) -> Result<i64, sqlx::Error> {
    if !restart_log(connection).await? {
        return Ok(1);
    }
    let write = async |connection: &mut SqliteConnection| {
        let written = sqlx::raw_sql(REWRITE_PAGE).execute(&mut *connection).await;
        if written.is_err() {
            statement::rollback(connection).await;
        }
        written.map(drop)
    };
    space.cut_log(connection, write).await.map(|is_cut| i64::from(!is_cut))
}

/// Releases free pages on a full disk, in parts for which the log has blocks.
async fn vacuum_on_full_disk(connection: &mut SqliteConnection, step: i64) -> Result<i64, sqlx::Error> {
    restart_log(connection).await?;
    let remaining_pages = vacuum(connection, step).await?;
    restart_log(connection).await?;
    Ok(remaining_pages)
}

/// Checkpoints the log so that the next write begins at its start, without releasing its blocks. Returns false if
/// a reader prevented it.
pub(super) async fn restart_log(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    checkpoint(connection, "RESTART").await.map(|busy| busy == 0)
}

/// Copies pages to the file, and restarts or truncates the log if no reader needs it. Does not wait for readers, because writes
/// wait for this. The next checkpoint copies the remaining pages.
async fn checkpoint(connection: &mut SqliteConnection, mode: &str) -> Result<i64, sqlx::Error> {
    let busy_timeout = BUSY_TIMEOUT.as_millis();
    sqlx::query("PRAGMA busy_timeout = 0").execute(&mut *connection).await?;
    let checkpoint = sqlx::AssertSqlSafe(format!("PRAGMA wal_checkpoint({mode})"));
    let busy = sqlx::query_scalar(checkpoint).fetch_one(&mut *connection).await;
    let restore = sqlx::AssertSqlSafe(format!("PRAGMA busy_timeout = {busy_timeout}"));
    sqlx::query(restore).execute(connection).await?;
    busy
}

async fn delete_marks(
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
