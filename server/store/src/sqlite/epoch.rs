//! Start of a new epoch: current states stay, the history of watches is deleted, and archived resources move to the archive.
//!
//! Clients that resume a watch or a list from a revision of the earlier epoch get "too old" and list again.

use sqlx::SqliteConnection;

use super::archive_writes;
use super::statement::{self, StatementBatch};
pub use crate::epoch::DEFAULT_REVISION_BUMP;
pub(crate) use crate::epoch::next_epoch;

/// Begins an epoch with the current state, at this revision.
pub(crate) async fn begin(
    connection: &mut SqliteConnection,
    epoch: i64,
    revision: i64,
) -> Result<(), sqlx::Error> {
    begin_with_removals(connection, &RemovedData::default(), epoch, revision).await
}

/// Data that does not become part of a new epoch.
#[derive(Debug, Default)]
pub(crate) struct RemovedData {
    /// Objects, by the revisions of their current states. Their past states and owner entries are removed as well.
    pub(crate) objects: Vec<i64>,
    /// IDs of resources.
    pub(crate) resources: Vec<i64>,
    /// Revisions of unreadable past states of the log or the archive.
    pub(crate) past_states: Vec<i64>,
}

/// Begins an epoch like [`begin`], and removes data in the same transaction.
pub(crate) async fn begin_with_removals(
    connection: &mut SqliteConnection,
    removed: &RemovedData,
    epoch: i64,
    revision: i64,
) -> Result<(), sqlx::Error> {
    let mut batch = StatementBatch::default();
    batch.statement("BEGIN IMMEDIATE");
    archive_writes::archive_all(&mut batch);
    remove_past_states(&mut batch, removed)?;
    for current in &removed.objects {
        for table in ["owner", "log"] {
            batch.statement(&format!(
                "DELETE FROM {table} WHERE (resource, namespace, name) = \
                 (SELECT l.resource, l.namespace, l.name FROM log l WHERE l.revision = ?)"
            ));
            batch.bind(*current)?;
        }
    }
    for resource in &removed.resources {
        for table in [
            "owner WHERE resource",
            "log WHERE resource",
            "archive WHERE resource",
            "archived WHERE resource",
            "resource WHERE id",
        ] {
            batch.statement(&format!("DELETE FROM {table} = ?"));
            batch.bind(*resource)?;
        }
    }
    // The read-only record applies to the earlier epoch only.
    let read_only_record = crate::read_only::resource();
    batch.statement(
        "DELETE FROM log WHERE resource IN (SELECT id FROM resource WHERE api_group = ? AND resource = ?)",
    );
    batch.bind(&*read_only_record.group)?;
    batch.bind(&*read_only_record.resource)?;
    // Only the last state of each object stays, even if `previous` is damaged. Tombstones then supersede no state.
    batch.statement(
        "DELETE FROM log WHERE EXISTS (SELECT 1 FROM log n WHERE n.resource = log.resource \
         AND n.namespace = log.namespace AND n.name = log.name AND n.revision > log.revision)",
    );
    batch.statement("DELETE FROM log WHERE deleted = 1");
    // A remaining state has no predecessor.
    batch.statement(
        "UPDATE log SET previous = 0 WHERE previous > 0 AND EXISTS (SELECT 1 FROM log p WHERE p.revision = log.previous)",
    );
    if !removed.objects.is_empty() {
        // The index may name an object under a key that was damaged later and does not exist.
        batch.statement(
            "DELETE FROM owner WHERE NOT EXISTS (SELECT 1 FROM log l WHERE l.resource = owner.resource \
             AND l.namespace = owner.namespace AND l.name = owner.name)",
        );
    }
    batch.statement("INSERT OR IGNORE INTO lost (after, until) SELECT revision, ? FROM meta WHERE id = 1");
    batch.bind(revision)?;
    batch.statement("UPDATE meta SET epoch = ?, revision = ?, compacted = ? WHERE id = 1");
    batch.bind(epoch)?;
    batch.bind(revision)?;
    batch.bind(revision)?;
    batch.statement("COMMIT");
    let result = batch.fetch(connection).await.map(drop);
    if result.is_err() {
        statement::rollback(connection).await;
    }
    result
}

/// Deletes unreadable past states from the archive, and records that it is incomplete up to there. The same applies where an
/// object is removed whose past key is unknown.
fn remove_past_states(batch: &mut StatementBatch, removed: &RemovedData) -> Result<(), sqlx::Error> {
    for past in &removed.past_states {
        batch.statement(
            "UPDATE archived SET since = max(since, (SELECT a.until FROM archive a WHERE a.revision = ?)) \
             WHERE resource = (SELECT a.resource FROM archive a WHERE a.revision = ?)",
        );
        batch.statement("DELETE FROM archive WHERE revision = ?");
        for _ in 0..3 {
            batch.bind(*past)?;
        }
    }
    for current in &removed.objects {
        batch.statement(
            "UPDATE archived SET since = max(since, (SELECT m.revision FROM meta m WHERE m.id = 1)) \
             WHERE resource = (SELECT l.resource FROM log l WHERE l.revision = ?)",
        );
        batch.bind(*current)?;
    }
    Ok(())
}
