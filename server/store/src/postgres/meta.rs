//! The row of `meta`: identity and progress of a store.

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::settings::PostgresSettings;
use crate::identity::Identity;

/// Identity and progress of a store.
#[derive(Clone, Debug)]
pub(super) struct Meta {
    pub(super) identity: Identity,
    pub(super) revision: i64,
    /// Oldest revision whose history is guaranteed.
    pub(super) compacted: i64,
    /// Revision up to which superseded states are deleted; at most `compacted`.
    pub(super) gc_revision: i64,
    /// Commit ID of the last change of the revision.
    pub(super) head_commit_id: i64,
}

/// Query for the row of `meta`, with the revision up to which the log is swept.
macro_rules! meta {
    () => {
        "SELECT store_id, epoch, revision, compacted, commit_id, (SELECT s.revision FROM swept s WHERE s.id = 1) FROM meta WHERE id = 1"
    };
}

/// Reads the row of `meta`.
pub(super) async fn meta(connection: &mut PgConnection) -> Result<Meta, sqlx::Error> {
    meta_of(&sqlx::query(meta!()).fetch_one(connection).await?)
}

/// Begins a transaction with the row of `meta` locked, in one round trip.
pub(super) async fn lock_meta(
    connection: &mut PgConnection,
    settings: &PostgresSettings,
) -> Result<Meta, sqlx::Error> {
    let begin = format!(concat!("{}; ", meta!(), " FOR UPDATE"), settings.begin_locking_sql());
    let mut rows = sqlx::raw_sql(sqlx::AssertSqlSafe(begin)).fetch_all(connection).await?;
    meta_of(&rows.pop().ok_or(sqlx::Error::RowNotFound)?)
}

fn meta_of(row: &PgRow) -> Result<Meta, sqlx::Error> {
    let identity = Identity { store_id: row.try_get(0)?, epoch: row.try_get(1)? };
    let (revision, compacted, head_commit_id) = (row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
    Ok(Meta { identity, revision, compacted, gc_revision: row.try_get(5)?, head_commit_id })
}

/// Returns a new commit ID.
pub(super) fn random_id() -> i64 {
    let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
    i64::from_ne_bytes((high ^ low).to_ne_bytes())
}
