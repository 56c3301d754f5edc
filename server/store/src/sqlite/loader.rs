//! Reads of complete resources, and search for damaged keys.

use std::sync::atomic::Ordering;

use futures::TryStreamExt;
use sqlx::{AssertSqlSafe, Row};
use tokio::sync::Semaphore;

use super::reader::{CURRENT, Reader, decode_error, store_error};
use super::row;
use crate::cache::{Cache, Slot, SnapshotBuilder, estimated_weight};
use crate::error::StoreError;
use crate::hub::Hub;
use crate::key::Resource;
use crate::loader::Loader;
use crate::metrics::Metrics;
use crate::unreadable::Unreadable;

impl Reader {
    /// Returns the objects of a resource whose keys cannot be read.
    pub(crate) async fn damaged_keys(&self, resource: &Resource) -> Result<Vec<Unreadable>, StoreError> {
        let slot = self.cache.slot(resource);
        self.ensure_loaded(&slot).await?;
        if let Some(snapshot) = slot.snapshot(self.hub.revision()) {
            return Ok(snapshot.unreadable_in(None).filter(|object| !object.has_key()).cloned().collect());
        }
        if let Some(damaged_keys) = slot.damaged_keys.get() {
            return Ok(damaged_keys.clone());
        }
        let _permit = self.scan_permits.acquire().await.map_err(|_| StoreError::Closed)?;
        let mut damaged = Vec::new();
        let mut rows = sqlx::query(CURRENT).bind(slot.id).bind(i64::MAX).fetch(&self.pool);
        while let Some(row) = rows.try_next().await.map_err(store_error)? {
            if let Err(key) = row::key(&slot.resource, &row, 0).map_err(store_error)? {
                let (reason, revision) = (key.reason(), row.try_get_unchecked(2).map_err(store_error)?);
                damaged.push(Unreadable::without_key(key.remains, revision, reason));
            }
        }
        drop(rows);
        self.add_uids(&mut damaged).await?;
        Ok(slot.damaged_keys.get_or_init(|| damaged).clone())
    }

    /// Adds UIDs to unreadable objects and logs them.
    async fn add_uids(&self, objects: &mut [Unreadable]) -> Result<(), StoreError> {
        for object in objects {
            let uid = sqlx::query("SELECT uid FROM log WHERE revision = ?").bind(object.revision());
            let uid = uid.fetch_optional(&self.pool).await.map_err(store_error)?;
            let uid = uid.as_ref().map(|row| row::text(row, 0)).transpose().map_err(store_error)?;
            log_unreadable(object);
            *object = object.clone().with_uid(uid.and_then(row::Text::valid).unwrap_or_default());
        }
        Ok(())
    }
}

/// Logs that an object cannot be read.
pub(crate) fn log_unreadable(object: &Unreadable) {
    tracing::error!(
        object = %object.key(),
        revision = object.revision(),
        error = object.reason(),
        "cannot read a stored object, omitted from lists{}",
        if object.is_sealed() { "" } else { "; `portico doctor` removes the object" }
    );
}

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

    fn full_read_permits(&self) -> &Semaphore {
        &self.scan_permits
    }

    async fn estimate_bytes(&self, slot: &Slot, max_bytes: i64) -> Result<i64, StoreError> {
        const AVERAGE: &str = "SELECT CAST(AVG(bytes) AS INTEGER) FROM (SELECT LENGTH(value) AS bytes FROM log \
            WHERE resource = ? AND deleted = 0 LIMIT 128)";
        if !slot.is_stored.load(Ordering::Acquire) {
            return Ok(0);
        }
        let average = sqlx::query_scalar(AVERAGE).bind(slot.id).fetch_one(&self.pool);
        let average: Option<i64> = average.await.map_err(store_error)?;
        let each = estimated_weight(average.unwrap_or_default());
        if let Some(count) = slot.count() {
            return Ok(i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(each));
        }
        let count = format!("SELECT count(*) FROM ({CURRENT} LIMIT ?3)");
        let count = sqlx::query_scalar(AssertSqlSafe(count)).bind(slot.id).bind(i64::MAX);
        let count: i64 = count.bind(max_bytes / each + 1).fetch_one(&self.pool).await.map_err(store_error)?;
        Ok(count.saturating_mul(each))
    }

    async fn read_state(
        &self,
        slot: &Slot,
        revision: i64,
        builder: &mut SnapshotBuilder,
    ) -> Result<bool, StoreError> {
        if !slot.is_stored.load(Ordering::Acquire) {
            return Ok(true);
        }
        // Revision order is the order of the file: every page is read once, wherever the keys are.
        let select = format!(
            "SELECT l.namespace, l.name, l.revision, l.value, l.checksum FROM log l \
             WHERE l.revision IN (SELECT revision FROM ({CURRENT}))"
        );
        let select = sqlx::query(AssertSqlSafe(select)).bind(slot.id).bind(revision);
        let mut rows = select.fetch(&self.pool);
        while let Some(row) = rows.try_next().await.map_err(store_error)? {
            if !builder.push(self.decoder().decode_row(&slot.resource, &row, 0).await.map_err(decode_error)?)
            {
                return Ok(false);
            }
        }
        // Releases the connection for the next statement.
        drop(rows);
        self.add_uids(builder.unreadable_mut()).await?;
        self.hub.check_not_compacted(revision)?;
        Ok(true)
    }
}
