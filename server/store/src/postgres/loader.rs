//! Reads of complete resources.

use futures::TryStreamExt;
use sqlx::Row;
use tokio::sync::Semaphore;

use super::failure::store_error;
use super::reader::{Reader, decode_error};
use super::row;
use crate::cache::{Cache, Slot, SnapshotBuilder, estimated_weight};
use crate::error::StoreError;
use crate::hub::Hub;
use crate::loader::Loader;
use crate::metrics::Metrics;
use crate::txn::Txn;

impl Loader for Reader {
    fn cache(&self) -> &Cache {
        &self.cache
    }

    fn hub(&self) -> &Hub {
        &self.hub
    }

    fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// One connection remains for other reads.
    fn full_read_permits(&self) -> &Semaphore {
        &self.history_permits
    }

    fn rejection_reason(&self, txn: &Txn) -> Option<String> {
        txn.operations.iter().find_map(row::exceeds_index)
    }

    async fn estimate_bytes(&self, slot: &Slot, max_bytes: i64) -> Result<i64, StoreError> {
        const AVERAGE: &str = "SELECT avg(bytes)::bigint FROM (SELECT octet_length(value) AS bytes FROM log \
            WHERE resource = $1 AND NOT deleted LIMIT 128) few";
        const COUNT: &str = "SELECT count(*) FROM (SELECT 1 FROM (SELECT DISTINCT ON (namespace, name) deleted FROM log \
            WHERE resource = $1 ORDER BY namespace, name, revision DESC) k WHERE NOT k.deleted LIMIT $2) found";
        let resource = slot.resource.to_string();
        let average = sqlx::query_scalar(AVERAGE).bind(&resource);
        let average: Option<i64> =
            self.pool.read(async |c| average.fetch_one(c).await).await.map_err(store_error)?;
        let each = estimated_weight(average.unwrap_or_default());
        if let Some(count) = slot.count() {
            return Ok(i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(each));
        }
        let count = sqlx::query_scalar(COUNT).bind(&resource).bind(max_bytes / each + 1);
        let count: i64 = self.pool.read(async |c| count.fetch_one(c).await).await.map_err(store_error)?;
        Ok(count.saturating_mul(each))
    }

    async fn read_state(
        &self,
        slot: &Slot,
        revision: i64,
        builder: &mut SnapshotBuilder,
    ) -> Result<bool, StoreError> {
        const SELECT: &str = "SELECT l.namespace, l.name, l.revision, l.value, l.uid, l.checksum FROM (\
            SELECT DISTINCT ON (namespace, name) revision, deleted FROM log WHERE resource = $1 AND revision <= $2 \
            ORDER BY namespace, name, revision DESC) k JOIN log l ON l.revision = k.revision WHERE NOT k.deleted";
        let mut connection = self.pool.acquire().await.map_err(store_error)?;
        let mut rows =
            sqlx::query(SELECT).bind(slot.resource.to_string()).bind(revision).fetch(&mut *connection);
        while let Some(row) = self.pool.with_timeout(rows.try_next()).await.map_err(store_error)? {
            let mut read =
                self.decoder().decode_pg_row(&slot.resource, &row, 0).await.map_err(decode_error)?;
            if let Err(object) = &mut read {
                tracing::error!(
                    object = %object.key(),
                    revision = object.revision(),
                    error = object.reason(),
                    "cannot read a stored object, omitted from lists"
                );
                let uid: &str = row.try_get(4).map_err(store_error)?;
                *object = object.clone().with_uid(&row::from_column(uid));
            }
            if !builder.push(read) {
                // The rest of the response is not needed, so the connection is dropped.
                return Ok(false);
            }
        }
        drop(rows);
        self.finish_full_read(connection, revision).await?;
        Ok(true)
    }

    async fn catch_up(&self) -> Result<(), StoreError> {
        self.latest_revision.wait_linearizable_fresh().await
    }
}
