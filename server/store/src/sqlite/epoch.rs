//! A new epoch of a store: its state goes on, the history that watches need does not; what is kept longer goes into the archive.
//!
//! Whoever holds a revision of the earlier epoch (a watch, a list to be continued) gets "too old" and lists again.

use sqlx::SqliteConnection;

use super::archiving;
use super::statement::{self, Batch};
pub use crate::epoch::DEFAULT_REVISION_BUMP;
pub(crate) use crate::epoch::after;

/// Makes the current state the beginning of an epoch, at this revision.
pub(crate) async fn begin(
    connection: &mut SqliteConnection,
    epoch: i64,
    revision: i64,
) -> Result<(), sqlx::Error> {
    begin_without(connection, &Gone::default(), epoch, revision).await
}

/// What does not come into a new epoch.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    /// Objects, by the revisions of their current states: they go with their past, and with whom they named as owners.
    pub(crate) objects: Vec<i64>,
    /// Resources, by number.
    pub(crate) resources: Vec<i64>,
    /// Past states of the log or the archive that cannot be read, by their revisions.
    pub(crate) past: Vec<i64>,
}

/// The same, without some of what is there, in the same transaction.
pub(crate) async fn begin_without(
    connection: &mut SqliteConnection,
    gone: &Gone,
    epoch: i64,
    revision: i64,
) -> Result<(), sqlx::Error> {
    let mut batch = Batch::default();
    batch.statement("BEGIN IMMEDIATE");
    archiving::keep_all(&mut batch);
    forget_past(&mut batch, gone)?;
    for current in &gone.objects {
        for table in ["owner", "log"] {
            batch.statement(&format!(
                "DELETE FROM {table} WHERE (resource, namespace, name) = \
                 (SELECT l.resource, l.namespace, l.name FROM log l WHERE l.revision = ?)"
            ));
            batch.bind(*current)?;
        }
    }
    for resource in &gone.resources {
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
    // Whether writes are stopped is a matter of the epoch before.
    let switch = crate::read_only::resource();
    batch.statement(
        "DELETE FROM log WHERE resource IN (SELECT id FROM resource WHERE api_group = ? AND resource = ?)",
    );
    batch.bind(&*switch.group)?;
    batch.bind(&*switch.resource)?;
    // Of each object the last state alone stays, whatever a damaged `previous` says. Then a tombstone stands over nothing.
    batch.statement(
        "DELETE FROM log WHERE EXISTS (SELECT 1 FROM log n WHERE n.resource = log.resource \
         AND n.namespace = log.namespace AND n.name = log.name AND n.revision > log.revision)",
    );
    batch.statement("DELETE FROM log WHERE deleted = 1");
    // What is still there is no state before another one.
    batch.statement(
        "UPDATE log SET previous = 0 WHERE previous > 0 AND EXISTS (SELECT 1 FROM log p WHERE p.revision = log.previous)",
    );
    if !gone.objects.is_empty() {
        // Under the key that was damaged later, an object is named as a dependent and is not there.
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
    let done = batch.fetch(connection).await.map(drop);
    if done.is_err() {
        statement::rollback(connection).await;
    }
    done
}

/// Takes past states that cannot be read out of the archive, and notes that it is not whole up to there; nor where an object goes
/// that was there, and nobody knows what it was.
fn forget_past(batch: &mut Batch, gone: &Gone) -> Result<(), sqlx::Error> {
    for past in &gone.past {
        batch.statement(
            "UPDATE archived SET since = max(since, (SELECT a.until FROM archive a WHERE a.revision = ?)) \
             WHERE resource = (SELECT a.resource FROM archive a WHERE a.revision = ?)",
        );
        batch.statement("DELETE FROM archive WHERE revision = ?");
        for _ in 0..3 {
            batch.bind(*past)?;
        }
    }
    for current in &gone.objects {
        batch.statement(
            "UPDATE archived SET since = max(since, (SELECT m.revision FROM meta m WHERE m.id = 1)) \
             WHERE resource = (SELECT l.resource FROM log l WHERE l.revision = ?)",
        );
        batch.bind(*current)?;
    }
    Ok(())
}
