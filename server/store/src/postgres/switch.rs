//! Stops and resumes the writes of all control services of a database, by a record in the log that each of them reads.

use futures::future::BoxFuture;
use sqlx::PgConnection;

use super::meta::random_id;
use super::open;
use super::session::{self, Purpose, run, with_timeout};
use super::settings::PostgresSettings;
use super::{failure, row};
use crate::codec;
use crate::copy::{CopyError, WriteSwitch};
use crate::read_only;

/// Read-only switch of a PostgreSQL database.
pub struct PostgresSwitch(pub PostgresSettings);

impl PostgresSwitch {
    async fn set(&self, reason: Option<&str>) -> Result<i64, CopyError> {
        let failed = |error: sqlx::Error| {
            tracing::debug!(error = failure::log_text(&error), "cannot stop or resume writes");
            CopyError::Store { place: self.0.place(), reason: failure::reason(&error) }
        };
        let step_timeout = self.0.step_timeout();
        let mut connection = session::connect(&self.0, Purpose::Write).await.map_err(failed)?;
        let set = with_timeout(step_timeout, self.write(&mut connection, reason)).await;
        session::close(connection, step_timeout).await;
        set.map_err(failed)
    }

    async fn write(&self, connection: &mut PgConnection, reason: Option<&str>) -> Result<i64, sqlx::Error> {
        const CURRENT: &str = "SELECT revision, deleted FROM log WHERE resource = $1 AND namespace = '' AND name = $2 \
            ORDER BY revision DESC LIMIT 1";
        const LOG: &str = "INSERT INTO log (revision, resource, namespace, name, uid, previous, deleted, commit_id, value) \
            VALUES ($1, $2, '', $3, '', $4, $5, $6, $7)";
        const MOVE: &str = "UPDATE meta SET revision = $1, commit_id = $2 WHERE id = 1";
        // This row orders all writers: the process that locks it has the next revision.
        let meta = open::lock_meta(connection, &self.0).await?;
        let (resource, name) = (read_only::resource().to_string(), row::to_column(read_only::key().name()));
        let current = sqlx::query_as(CURRENT).bind(&resource).bind(&*name);
        let current: Option<(i64, bool)> = current.fetch_optional(&mut *connection).await?;
        let stopped = current.filter(|(_, deleted)| !deleted).map(|(revision, _)| revision);
        if stopped.is_some() == reason.is_some() {
            run(connection, self.0.end_sql()).await?;
            return Ok(stopped.unwrap_or(meta.revision));
        }
        let (revision, commit_id) = (meta.revision + 1, random_id());
        let value = codec::encode(&read_only::record_json(reason.unwrap_or_default()));
        let log = sqlx::query(LOG).bind(revision).bind(&resource).bind(&*name).bind(stopped.unwrap_or(0));
        log.bind(reason.is_none()).bind(commit_id).bind(value).execute(&mut *connection).await?;
        sqlx::query(MOVE).bind(revision).bind(commit_id).execute(&mut *connection).await?;
        run(connection, self.0.commit_sql()).await?;
        Ok(revision)
    }
}

impl WriteSwitch for PostgresSwitch {
    fn set_read_only<'a>(&'a self, reason: Option<&'a str>) -> BoxFuture<'a, Result<i64, CopyError>> {
        Box::pin(self.set(reason))
    }
}
