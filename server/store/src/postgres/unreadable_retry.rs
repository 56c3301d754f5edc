//! Retries objects that could not be opened, after a change of keys.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use sqlx::{PgConnection, Row};

use super::fatal::{FatalError, WriterFailure};
use super::session::{BEGIN, run, with_timeout};
use super::writer::Writer;
use crate::decode::DecodeError;
use crate::record::Record;
use crate::unreadable::Unreadable;

/// Delay before an unavailable key service is called again.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(5);
/// Number of objects per query.
const PAGE_OBJECTS: usize = 100;

impl Writer {
    /// Publishes objects that can be opened now. Watchers of their resources have passed their revisions, and list again.
    pub(super) async fn retry_unreadable(&mut self) -> Result<(), FatalError> {
        self.retry_unreadable_at = None;
        let mut sealed = self.publisher.cache.unreadable();
        sealed.retain(|object| object.is_sealed() && object.has_key());
        for part in sealed.chunks(PAGE_OBJECTS) {
            let Some(mut connection) = self.connection.take() else {
                self.retry_unreadable_at = Some(Instant::now() + RETRY_DELAY);
                return Ok(());
            };
            match self.reopen(&mut connection, part).await {
                Ok(records) => {
                    self.connection = Some(connection);
                    self.publish_readable(records);
                }
                Err(failure) => {
                    self.retry_unreadable_at = Some(Instant::now() + RETRY_DELAY);
                    self.handle_failure(failure, connection).await?;
                }
            }
        }
        Ok(())
    }

    fn publish_readable(&self, records: Vec<Record>) {
        let resources: BTreeSet<_> = records.iter().map(|record| record.key.resource().clone()).collect();
        for record in records {
            tracing::info!(object = %record.key, "stored object is readable again");
            self.publisher.cache.restore_readable(Arc::new(record));
        }
        for resource in &resources {
            self.publisher.count_unreadable(resource);
            self.publisher.hub.expire(resource);
        }
    }

    /// Returns the objects that can be opened now.
    async fn reopen(
        &mut self,
        connection: &mut PgConnection,
        objects: &[Unreadable],
    ) -> Result<Vec<Record>, WriterFailure> {
        const SELECT: &str = "SELECT revision, value, checksum FROM log WHERE revision = ANY($1)";
        let step_timeout = self.settings.step_timeout();
        let revisions: Vec<i64> = objects.iter().map(Unreadable::revision).collect();
        let mut opened = Vec::new();
        with_timeout(step_timeout, run(connection, BEGIN)).await?;
        let mut rows = sqlx::query(SELECT).bind(revisions).fetch(&mut *connection);
        while let Some(row) = with_timeout(step_timeout, rows.try_next()).await? {
            let (revision, value): (i64, &[u8]) = (row.try_get(0)?, row.try_get(1)?);
            let Some(object) = objects.iter().find(|object| object.revision() == revision) else { continue };
            let checksum = row.try_get("checksum")?;
            match self.reader.decoder().decode(object.key().clone(), revision, value, checksum).await {
                Ok(read) => opened.extend(read.ok()),
                Err(DecodeError::Sealed { .. }) => {
                    self.retry_unreadable_at = Some(Instant::now() + RETRY_DELAY)
                }
                Err(DecodeError::Database(error)) => return Err(WriterFailure::Database(error)),
            }
        }
        drop(rows);
        with_timeout(step_timeout, run(connection, self.settings.end_sql())).await?;
        Ok(opened)
    }
}
