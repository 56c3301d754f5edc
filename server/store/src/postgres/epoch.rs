//! Begins a new epoch of a database: the state continues after every published revision, the history is dropped.

use sqlx::{PgConnection, Row};

use super::meta::random_id;
use crate::epoch::DEFAULT_REVISION_BUMP;

/// Begins a new epoch after `published`, an epoch and a revision, if the database is still in the epoch `current_epoch`.
/// Returns the epoch and its first revision; `None` if another process has begun one.
pub(super) async fn begin(
    connection: &mut PgConnection,
    current_epoch: i64,
    published: (i64, i64),
) -> Result<Option<(i64, i64)>, sqlx::Error> {
    let ((epoch, revision), by) = (published, random_id());
    let revision = format!("greatest(was.revision, {revision}) + {DEFAULT_REVISION_BUMP}");
    // One statement, so that only one of the processes that detect the loss begins an epoch.
    let begin = format!(
        "WITH was AS (SELECT epoch, revision FROM meta WHERE id = 1 AND epoch = {current_epoch} FOR UPDATE), begun AS (\
         UPDATE meta SET epoch = greatest(was.epoch, {epoch}) + 1, commit_id = {by}, revision = {revision}, compacted = {revision} \
         FROM was WHERE meta.id = 1 AND meta.epoch = {current_epoch} RETURNING meta.epoch, meta.revision), gap AS (\
         INSERT INTO lost (after, until) SELECT was.revision, begun.revision FROM was, begun ON CONFLICT DO NOTHING) \
         SELECT epoch, revision FROM begun"
    );
    let row = sqlx::raw_sql(sqlx::AssertSqlSafe(begin)).fetch_optional(connection).await?;
    row.map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
}
