//! Finds objects across resources: dependents, owners, terminating objects, content of a namespace. Uses read connections only.

use futures::TryStreamExt;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row};

use super::reader::{CURRENT, Reader, decode_error, store_error};
use super::row::{self, Text};
use crate::cache::{PendingCount, Slot};
use crate::codec::SEALED_JSON;
use crate::error::StoreError;
use crate::key::{Key, Resource};

/// Revision at a time (`?`); 0 if no mark is that old. Commits after the last mark belong to the same second.
pub(super) const REVISION_AT: &str = "SELECT coalesce((SELECT iif(m.revision = (SELECT max(revision) FROM mark), \
    (SELECT revision FROM meta WHERE id = 1), m.revision) FROM mark m WHERE m.at <= ? \
    ORDER BY m.at DESC, m.revision DESC LIMIT 1), 0)";

impl Reader {
    pub(crate) async fn dependents(&self, owner_uid: &str) -> Result<Vec<Key>, StoreError> {
        const SELECT: &str = "SELECT r.api_group, r.resource, o.namespace, o.name FROM owner o \
            JOIN resource r ON r.id = o.resource WHERE o.owner_uid = ?";
        let rows = sqlx::query(SELECT).bind(owner_uid).fetch_all(&self.pool).await.map_err(store_error)?;
        self.keys(&rows)
    }

    pub(crate) async fn owner_uids(&self) -> Result<Vec<String>, StoreError> {
        const SELECT: &str = "SELECT DISTINCT owner_uid FROM owner";
        let rows = sqlx::query(SELECT).fetch_all(&self.pool).await.map_err(store_error)?;
        let mut owners = Vec::with_capacity(rows.len());
        for row in &rows {
            match row::text(row, 0).map_err(store_error)? {
                Text::Valid(uid) => owners.push(uid.to_owned()),
                Text::Damaged(uid) => {
                    tracing::error!(uid, "cannot read a UID in the owner index, entry skipped")
                }
            }
        }
        Ok(owners)
    }

    pub(crate) async fn terminating_keys(&self) -> Result<Vec<Key>, StoreError> {
        let (mut keys, uncached_slots) = self.cache.terminating_keys();
        let _permit = self.scan_permits.acquire().await.map_err(|_| StoreError::Closed)?;
        let uncached_ids: Vec<String> = uncached_slots.iter().map(|slot| slot.id.to_string()).collect();
        keys.extend(self.terminating_keys_in(&uncached_ids.join(",")).await?);
        keys.sort();
        Ok(keys)
    }

    /// Returns the terminating keys of uncached resources, by resource IDs. An index contains the objects that may be
    /// terminating, with the condition of the query; sealed values are opened here.
    async fn terminating_keys_in(&self, resources: &str) -> Result<Vec<Key>, StoreError> {
        const MAY_BE: &str = "(instr(l.value, x'64656c6574696f6e54696d657374616d70223a') > 0 \
            OR substr(l.value, 1, 1) = x'02')";
        let select = format!(
            "SELECT r.api_group, r.resource, l.namespace, l.name, \
             iif(hex(substr(l.value, 1, 1)) = '{SEALED_JSON:02X}', l.value, NULL) FROM log l INDEXED BY log_deleting \
             JOIN resource r ON r.id = l.resource WHERE {MAY_BE} AND l.resource IN ({resources}) AND l.deleted = 0 \
             AND NOT EXISTS (SELECT 1 FROM log n WHERE n.resource = l.resource AND n.namespace = l.namespace \
             AND n.name = l.name AND n.revision > l.revision)"
        );
        let mut rows = sqlx::query(AssertSqlSafe(select)).fetch(&self.pool);
        let mut keys = Vec::new();
        while let Some(row) = rows.try_next().await.map_err(store_error)? {
            let sealed: Option<&[u8]> = row.try_get_unchecked(4).map_err(store_error)?;
            for key in self.keys(std::slice::from_ref(&row))? {
                if self.is_terminating(&key, sealed).await? {
                    keys.push(key);
                }
            }
        }
        Ok(keys)
    }

    /// Returns true if an object is terminating: `sealed` is its stored value, or `None` if it is plain
    /// and matched the condition.
    async fn is_terminating(&self, key: &Key, sealed: Option<&[u8]>) -> Result<bool, StoreError> {
        let Some(sealed) = sealed else { return Ok(true) };
        let decoded = self.decoder().decode(key.clone(), 0, sealed, None).await.map_err(decode_error)?;
        Ok(decoded.is_ok_and(|record| record.may_be_terminating()))
    }

    /// Returns the keys from the columns group, resource, namespace, name; sorted. Unreadable keys are omitted and logged.
    fn keys(&self, rows: &[SqliteRow]) -> Result<Vec<Key>, StoreError> {
        let mut keys = Vec::with_capacity(rows.len());
        for row in rows {
            // An unreadable resource name was logged at the start.
            let Ok(resource) = row::resource(row, 0).map_err(store_error)? else { continue };
            let slot = self.cache.slot(&resource);
            match row::key(&slot.resource, row, 2).map_err(store_error)? {
                Ok(key) => keys.push(key),
                Err(damaged) => {
                    tracing::error!(
                        object = %damaged.remains,
                        error = damaged.reason(),
                        "cannot read a stored key, object skipped"
                    );
                }
            }
        }
        keys.sort();
        Ok(keys)
    }

    pub(crate) async fn revision_at(&self, time: i64) -> Result<i64, StoreError> {
        let select = sqlx::query_scalar(REVISION_AT);
        select.bind(time).fetch_one(&self.pool).await.map_err(store_error)
    }

    pub(crate) async fn resources_in(&self, namespace: &str) -> Result<Vec<Resource>, StoreError> {
        const SELECT: &str = "SELECT r.id FROM resource r WHERE EXISTS (SELECT 1 FROM log l \
            WHERE l.resource = r.id AND l.namespace = ? AND l.deleted = 0 AND NOT EXISTS (SELECT 1 FROM log n \
            WHERE n.resource = l.resource AND n.namespace = l.namespace AND n.name = l.name \
            AND n.revision > l.revision))";
        let select = sqlx::query_scalar(SELECT).bind(format!("{namespace}/"));
        let ids: Vec<i64> = select.fetch_all(&self.pool).await.map_err(store_error)?;
        let mut resources: Vec<_> =
            ids.into_iter().filter_map(|id| self.cache.by_id(id)).map(|slot| slot.resource.clone()).collect();
        resources.sort();
        Ok(resources)
    }

    pub(crate) async fn object_counts(&self) -> Result<Vec<(Resource, u64)>, StoreError> {
        let mut counts = Vec::new();
        for slot in self.cache.slots() {
            let count = match slot.count() {
                Some(count) => count,
                None => self.count(&slot).await?,
            };
            if count > 0 {
                counts.push((slot.resource.clone(), count));
            }
        }
        counts.sort();
        Ok(counts)
    }

    /// Counts the objects of an uncached resource. The count is updated with later changes.
    async fn count(&self, slot: &Slot) -> Result<u64, StoreError> {
        let _permit = self.scan_permits.acquire().await.map_err(|_| StoreError::Closed)?;
        let pending_count = self.cache.begin_count(slot, "", None);
        let revision = pending_count.as_ref().map_or_else(|| self.hub.revision(), PendingCount::revision);
        let count = AssertSqlSafe(format!("SELECT count(*) FROM ({CURRENT})"));
        let count = sqlx::query_scalar(count).bind(slot.id).bind(revision);
        let count: i64 = count.fetch_one(&self.pool).await.map_err(store_error)?;
        if let (Some(pending_count), Ok(())) = (pending_count, self.hub.check_not_compacted(revision)) {
            pending_count.complete(count);
        }
        Ok(u64::try_from(count).unwrap_or_default())
    }

    pub(crate) async fn average_sizes(&self) -> Result<Vec<(Resource, u64)>, StoreError> {
        // Reads a few rows of each resource; SQLite reads a length without its value.
        const SELECT: &str = "SELECT r.id, (SELECT CAST(AVG(bytes) AS INTEGER) FROM (SELECT LENGTH(value) AS bytes FROM log \
            WHERE resource = r.id AND deleted = 0 LIMIT 128)) AS average FROM resource r WHERE average IS NOT NULL";
        self.by_resource(SELECT).await
    }

    /// Returns numbers by resource, sorted, from a query that returns resource IDs.
    async fn by_resource(&self, select: &'static str) -> Result<Vec<(Resource, u64)>, StoreError> {
        let rows: Vec<(i64, i64)> =
            sqlx::query_as(select).fetch_all(&self.pool).await.map_err(store_error)?;
        let named = rows.into_iter().filter_map(|(id, number)| {
            let slot = self.cache.by_id(id)?;
            Some((slot.resource.clone(), u64::try_from(number).unwrap_or_default()))
        });
        let mut numbers: Vec<_> = named.collect();
        numbers.sort();
        Ok(numbers)
    }
}
