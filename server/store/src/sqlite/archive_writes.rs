//! Moves history from the log to the archive, and deletes expired archived states: SQL of the writer, in
//! small steps between commits.

use sqlx::{Row, SqliteConnection};

use super::history::PREVIOUS;
use super::space::Space;
use super::statement::{self, StatementBatch};
use crate::reseal::ResealedState;

/// Maximum number of states that one step deletes.
pub(super) const STEP_STATES: i64 = 1_000;

/// Start of the statement that inserts a row of the archive.
const INSERT_ARCHIVE: &str = "INSERT OR IGNORE INTO archive \
    (revision, resource, namespace, name, previous, deleted, until, bytes, value, checksum)";

/// Records that resources are archived, by their IDs joined by commas: from now on, history that leaves the log
/// moves to the archive.
pub(super) fn note_archived(
    batch: &mut StatementBatch,
    resources: &str,
    compacted: i64,
) -> Result<(), sqlx::Error> {
    batch.statement(&format!(
        "INSERT OR IGNORE INTO archived (resource, since) SELECT id, ? FROM resource WHERE id IN ({resources})"
    ));
    batch.bind(compacted)
}

/// Archives the states of a range of revisions that the log is about to delete, of the resources with these
/// IDs, joined by commas.
pub(super) fn archive_range(
    batch: &mut StatementBatch,
    resources: &str,
    from: i64,
    until: i64,
) -> Result<(), sqlx::Error> {
    if resources.is_empty() {
        return Ok(());
    }
    note_archived(batch, resources, from)?;
    batch.statement(&insert_states("> ? AND l.revision <= ?", resources));
    batch.statement(&insert_tombstones("> ? AND l.revision <= ?", resources));
    for _ in 0..2 {
        batch.bind(from)?;
        batch.bind(until)?;
    }
    Ok(())
}

/// Records that the log deletes history up to a revision without archiving it.
pub(super) fn note_discarded(batch: &mut StatementBatch, until: i64) -> Result<(), sqlx::Error> {
    batch.statement("UPDATE archived SET since = max(since, ?)");
    batch.bind(until)
}

/// Archives all past states in the log of the archived resources.
pub(super) fn archive_all(batch: &mut StatementBatch) {
    const ARCHIVED: &str = "SELECT resource FROM archived";
    batch.statement(&insert_states("> 0", ARCHIVED));
    batch.statement(&insert_tombstones("> 0", ARCHIVED));
}

/// Returns the insertion of the states superseded in a range of revisions.
fn insert_states(range: &str, resources: &str) -> String {
    format!(
        "{INSERT_ARCHIVE} SELECT p.revision, p.resource, p.namespace, p.name, p.previous, p.deleted, l.revision, length(p.value), p.value, p.checksum \
         FROM log l JOIN log p ON {PREVIOUS} WHERE l.revision {range} AND +l.resource IN ({resources})"
    )
}

/// Returns the insertion of the tombstones in a range of revisions.
fn insert_tombstones(range: &str, resources: &str) -> String {
    format!(
        "{INSERT_ARCHIVE} SELECT l.revision, l.resource, l.namespace, l.name, l.previous, 1, l.revision, length(l.value), l.value, l.checksum \
         FROM log l WHERE l.revision {range} AND l.deleted = 1 AND +l.resource IN ({resources})"
    )
}

/// Deletes the oldest states of a resource that were superseded up to a revision, at most [`STEP_STATES`]. Returns their
/// number. `None` deletes all states, for a resource that is no longer archived.
pub(super) async fn delete_expired(
    connection: &mut SqliteConnection,
    resource: i64,
    until: Option<i64>,
    compacted: i64,
) -> Result<i64, sqlx::Error> {
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await?;
    let delete = async {
        const DELETE: &str = "DELETE FROM archive WHERE revision IN (SELECT revision FROM archive \
            WHERE resource = ? AND until <= ? ORDER BY until LIMIT ?) RETURNING until";
        let forget = sqlx::query(DELETE).bind(resource).bind(until.unwrap_or(i64::MAX)).bind(STEP_STATES);
        let mut rows = Vec::new();
        for row in forget.fetch_all(&mut *connection).await? {
            rows.push(row.try_get::<i64, _>(0)?);
        }
        let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
        let since = match rows.into_iter().max() {
            Some(last) if count == STEP_STATES => last,
            _ => until.unwrap_or(i64::MAX).min(compacted),
        };
        let update = match until {
            None if count < STEP_STATES => sqlx::query("DELETE FROM archived WHERE resource = ?"),
            _ => sqlx::query("UPDATE archived SET since = max(since, ?) WHERE resource = ?").bind(since),
        };
        update.bind(resource).execute(&mut *connection).await?;
        sqlx::query("COMMIT").execute(&mut *connection).await?;
        Ok(count)
    };
    let deleted = delete.await;
    if deleted.is_err() {
        statement::rollback(connection).await;
    }
    deleted
}

/// Replaces the values of archived states in one transaction. States that were deleted in the meantime stay deleted.
pub(super) async fn replace(
    connection: &mut SqliteConnection,
    values: &[ResealedState],
    space: &Space,
) -> Result<(), sqlx::Error> {
    const REPLACE: &str = "UPDATE archive SET value = ?1, bytes = length(?1) WHERE revision = ?2";
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await?;
    let replaced = async {
        for (revision, value) in values {
            sqlx::query(REPLACE).bind(value).bind(revision).execute(&mut *connection).await?;
        }
        space.extend_for_transaction(&mut *connection).await?;
        sqlx::query("COMMIT").execute(&mut *connection).await.map(drop)
    };
    let replaced = replaced.await;
    if replaced.is_err() {
        statement::rollback(connection).await;
    }
    replaced
}
