//! A new epoch of a store: its state goes on, its history does not.
//!
//! Whoever holds a revision of the earlier epoch (a watch, a list to be continued) gets "too old" and lists again.

use sqlx::SqliteConnection;

use super::persist;
use super::statement::Batch;

/// How far the revision is moved past the last one that is known, unless told otherwise: further than writes can have
/// gone on since a backup was taken. etcdutl's documentation recommends the same number.
pub const DEFAULT_REVISION_BUMP: i64 = 1_000_000_000;

/// Makes the current state the beginning of an epoch, at this revision.
pub(crate) async fn begin(
    connection: &mut SqliteConnection,
    epoch: i64,
    revision: i64,
) -> Result<(), sqlx::Error> {
    let mut batch = Batch::default();
    batch.statement("BEGIN IMMEDIATE");
    batch.statement("DELETE FROM log WHERE revision IN (SELECT previous FROM log WHERE previous > 0)");
    batch.statement("DELETE FROM log WHERE deleted = 1");
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
