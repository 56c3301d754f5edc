//! A new epoch of a store: its state goes on, its history does not.
//!
//! Whoever holds a revision of the earlier epoch (a watch, a list to be continued) gets "too old" and lists again.

use sqlx::SqliteConnection;

use super::persist;
use super::statement::Batch;

/// How far the revision is moved past the last one that is known, by default: further than writes can have
/// gone on since a backup was taken. etcdutl's documentation recommends the same number.
pub const DEFAULT_REVISION_BUMP: i64 = 1_000_000_000;

/// The greatest revision that an epoch may begin at: as many are left for it.
const MAX_REVISION: i64 = i64::MAX / 2;

/// Epoch and revision at which a new epoch begins, `bump` past the greatest that are known; none when no revisions are left.
pub(crate) fn after(epoch: i64, revision: i64, bump: i64) -> Option<(i64, i64)> {
    let revision = revision.checked_add(bump.max(1)).filter(|revision| *revision <= MAX_REVISION)?;
    Some((epoch.checked_add(1)?, revision))
}

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
        for table in ["owner WHERE resource", "log WHERE resource", "resource WHERE id"] {
            batch.statement(&format!("DELETE FROM {table} = ?"));
            batch.bind(*resource)?;
        }
    }
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
    batch.statement("UPDATE meta SET epoch = ?, revision = ?, compacted = ? WHERE id = 1");
    batch.bind(epoch)?;
    batch.bind(revision)?;
    batch.bind(revision)?;
    batch.statement("COMMIT");
    let done = batch.fetch(connection).await.map(drop);
    if done.is_err() {
        persist::rollback(connection).await;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_begins_past_what_is_known_or_not_at_all() {
        assert_eq!(after(1, 5, 10), Some((2, 15)));
        assert_eq!(after(1, 5, -3), Some((2, 6)));
        assert_eq!(after(1, MAX_REVISION - 1, 1), Some((2, MAX_REVISION)));
        assert_eq!(after(1, MAX_REVISION, 1), None);
        assert_eq!(after(1, i64::MAX, 1), None);
        assert_eq!(after(i64::MAX, 1, 1), None);
    }
}
