//! Retries objects that could not be opened, after a change of keys.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use sqlx::{PgConnection, Row};

use super::fatal::{Failure, Fatal};
use super::session::{BEGIN, in_time, run};
use super::writer::Writer;
use crate::decode::DecodeError;
use crate::record::Record;
use crate::unreadable::Unreadable;

/// Delay before an unavailable key service is called again.
pub(super) const RETRY: Duration = Duration::from_secs(5);
/// Number of objects per query.
const PART: usize = 100;

impl Writer {
    /// Publishes objects that can be opened now. Watchers of their resources have passed their revisions, and list again.
    pub(super) async fn heal(&mut self) -> Result<(), Fatal> {
        self.heals_at = None;
        let mut sealed = self.publisher.cache.unreadable();
        sealed.retain(|object| object.is_sealed() && object.has_key());
        for part in sealed.chunks(PART) {
            let Some(mut connection) = self.connection.take() else {
                self.heals_at = Some(Instant::now() + RETRY);
                return Ok(());
            };
            match self.open_again(&mut connection, part).await {
                Ok(records) => {
                    self.connection = Some(connection);
                    self.show_again(records);
                }
                Err(failure) => {
                    self.heals_at = Some(Instant::now() + RETRY);
                    self.failed(failure, connection).await?;
                }
            }
        }
        Ok(())
    }

    fn show_again(&self, records: Vec<Record>) {
        let resources: BTreeSet<_> = records.iter().map(|record| record.key.resource().clone()).collect();
        for record in records {
            tracing::info!(object = %record.key, "stored object is readable again");
            self.publisher.cache.heal(Arc::new(record));
        }
        for resource in &resources {
            self.publisher.count_unreadable(resource);
            self.publisher.hub.expire(resource);
        }
    }

    /// Returns the objects that can be opened now.
    async fn open_again(
        &mut self,
        connection: &mut PgConnection,
        objects: &[Unreadable],
    ) -> Result<Vec<Record>, Failure> {
        const SELECT: &str = "SELECT revision, value, checksum FROM log WHERE revision = ANY($1)";
        let patience = self.settings.patience();
        let revisions: Vec<i64> = objects.iter().map(Unreadable::revision).collect();
        let mut opened = Vec::new();
        in_time(patience, run(connection, BEGIN)).await?;
        let mut rows = sqlx::query(SELECT).bind(revisions).fetch(&mut *connection);
        while let Some(row) = in_time(patience, rows.try_next()).await? {
            let (revision, value): (i64, &[u8]) = (row.try_get(0)?, row.try_get(1)?);
            let Some(object) = objects.iter().find(|object| object.revision() == revision) else { continue };
            let checksum = row.try_get("checksum")?;
            match self.reader.decoder().value(object.key().clone(), revision, value, checksum).await {
                Ok(read) => opened.extend(read.ok()),
                Err(DecodeError::Sealed { .. }) => self.heals_at = Some(Instant::now() + RETRY),
                Err(DecodeError::Database(error)) => return Err(Failure::Database(error)),
            }
        }
        drop(rows);
        in_time(patience, run(connection, self.settings.end())).await?;
        Ok(opened)
    }
}
