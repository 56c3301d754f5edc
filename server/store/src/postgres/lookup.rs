//! Finds objects across resources: dependents, owners, terminating objects, content of a namespace, stale seals.

use futures::TryStreamExt;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::clock;
use super::failure::store_error;
use super::pool::ConnectionPool;
use super::reader::{Reader, decode_error};
use super::row;
use crate::cache::{PendingCount, Slot};
use crate::error::StoreError;
use crate::key::{Key, Resource};
use crate::store::StaleSeals;

impl Reader {
    pub(super) async fn dependents(&self, owner_uid: &str) -> Result<Vec<Key>, StoreError> {
        const SELECT: &str = "SELECT resource, namespace, name FROM owner WHERE owner_uid = $1";
        let select = sqlx::query(SELECT).bind(row::to_column(owner_uid));
        let rows = self.pool.read(async |c| select.fetch_all(c).await).await.map_err(store_error)?;
        let mut keys = rows.iter().map(|row| self.key(row)).collect::<Result<Vec<_>, _>>()?;
        keys.sort();
        Ok(keys)
    }

    /// Returns the key from the columns resource, namespace, name.
    fn key(&self, row: &PgRow) -> Result<Key, StoreError> {
        let resource = row::resource(row.try_get(0).map_err(store_error)?);
        row::key(&self.cache.slot(&resource).resource, row, 1).map_err(store_error)
    }

    pub(super) async fn owner_uids(&self) -> Result<Vec<String>, StoreError> {
        let select = sqlx::query_scalar("SELECT DISTINCT owner_uid FROM owner");
        let uids: Vec<String> =
            self.pool.read(async |c| select.fetch_all(c).await).await.map_err(store_error)?;
        Ok(uids.iter().map(|uid| row::from_column(uid).into_owned()).collect())
    }

    pub(super) async fn terminating_keys(&self) -> Result<Vec<Key>, StoreError> {
        self.latest_revision.wait_linearizable().await?;
        let (mut keys, uncached_slots) = self.cache.terminating_keys();
        let uncached_names = uncached_slots.iter().map(|slot| slot.resource.to_string()).collect();
        keys.extend(self.terminating_keys_in(uncached_names).await?);
        keys.sort();
        Ok(keys)
    }

    /// Returns the terminating keys of uncached resources. Opens sealed values.
    async fn terminating_keys_in(&self, resources: Vec<String>) -> Result<Vec<Key>, StoreError> {
        // Same condition as the index `log_deleting`. It also finds past states.
        const SELECT: &str = "SELECT k.resource, k.namespace, k.name, l.value FROM (\
            SELECT DISTINCT resource, namespace, name FROM log WHERE resource = ANY($1) AND \
            (position('\\x64656c6574696f6e54696d657374616d70223a'::bytea IN value) > 0 OR get_byte(value, 0) = 2)) k \
            JOIN LATERAL (SELECT s.deleted, s.value FROM log s WHERE s.resource = k.resource \
            AND s.namespace = k.namespace AND s.name = k.name ORDER BY s.revision DESC LIMIT 1) l ON true \
            WHERE NOT l.deleted";
        let select = sqlx::query(SELECT).bind(resources);
        let mut connection = self.pool.acquire().await.map_err(store_error)?;
        let mut rows = select.fetch(&mut *connection);
        let mut keys = Vec::new();
        while let Some(row) = self.pool.with_timeout(rows.try_next()).await.map_err(store_error)? {
            let (key, value): (Key, &[u8]) = (self.key(&row)?, row.try_get(3).map_err(store_error)?);
            let decoded = self.decoder().decode(key.clone(), 0, value, None).await.map_err(decode_error)?;
            if decoded.is_ok_and(|record| record.may_be_terminating()) {
                keys.push(key);
            }
        }
        drop(rows);
        connection.release().await.map_err(store_error)?;
        Ok(keys)
    }

    pub(super) async fn revision_at(&self, time: i64) -> Result<i64, StoreError> {
        revision_at(&self.pool, time).await.map_err(store_error)
    }

    pub(super) async fn resources_in(&self, namespace: &str) -> Result<Vec<Resource>, StoreError> {
        // Reads each resource only up to the first existing object.
        const SELECT: &str = "SELECT r.resource FROM unnest($1::text[]) AS r(resource) WHERE EXISTS (SELECT 1 FROM (\
            SELECT DISTINCT ON (l.name) l.deleted FROM log l \
            WHERE l.resource = r.resource AND l.namespace = $2 ORDER BY l.name, l.revision DESC) k WHERE NOT k.deleted)";
        self.latest_revision.wait_linearizable().await?;
        let select =
            sqlx::query_scalar(SELECT).bind(self.names()).bind(format!("{}/", row::to_column(namespace)));
        let names: Vec<String> =
            self.pool.read(async |c| select.fetch_all(c).await).await.map_err(store_error)?;
        let mut resources: Vec<_> = names.iter().map(|name| row::resource(name)).collect();
        resources.sort();
        Ok(resources)
    }

    /// Returns the names of all known resources, as in columns.
    fn names(&self) -> Vec<String> {
        self.cache.slots().iter().map(|slot| slot.resource.to_string()).collect()
    }

    pub(super) async fn object_counts(&self) -> Result<Vec<(Resource, u64)>, StoreError> {
        self.latest_revision.wait_linearizable().await?;
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
        const SELECT: &str = "SELECT count(*) FROM (SELECT DISTINCT ON (namespace, name) deleted FROM log \
            WHERE resource = $1 AND revision <= $2 ORDER BY namespace, name, revision DESC) k WHERE NOT deleted";
        let mut connection = self.pool.acquire().await.map_err(store_error)?;
        let pending_count = self.cache.begin_count(slot, "", None);
        let revision = pending_count.as_ref().map_or_else(|| self.hub.revision(), PendingCount::revision);
        let count = sqlx::query_scalar(SELECT).bind(slot.resource.to_string()).bind(revision);
        let count: i64 =
            self.pool.with_timeout(count.fetch_one(&mut *connection)).await.map_err(store_error)?;
        let revision_check = self.finish_exact_read(connection, revision).await;
        if let (Some(pending_count), Ok(())) = (pending_count, revision_check) {
            pending_count.complete(count);
        }
        Ok(u64::try_from(count).unwrap_or_default())
    }

    pub(super) async fn average_sizes(&self) -> Result<Vec<(Resource, u64)>, StoreError> {
        // Reads a few rows of each resource; the length is read without the value.
        const SELECT: &str = "SELECT resource, average FROM (SELECT r.resource, (SELECT avg(bytes)::bigint FROM (\
            SELECT octet_length(l.value) AS bytes FROM log l WHERE l.resource = r.resource AND NOT l.deleted LIMIT 128) few) \
            AS average FROM unnest($1::text[]) AS r(resource)) sizes WHERE average IS NOT NULL";
        let select = sqlx::query_as(SELECT).bind(self.names());
        let rows = self.pool.read(async |c| select.fetch_all(c).await).await.map_err(store_error)?;
        Ok(by_resource(rows))
    }

    pub(super) fn has_seal_rules(&self) -> bool {
        self.seal.is_active()
    }

    pub(super) fn sealed_resources(&self) -> Vec<Resource> {
        self.seal.covered_resources(self.cache.resources().into_values())
    }

    pub(super) async fn has_stale_seal(&self, key: &Key, revision: i64) -> Result<bool, StoreError> {
        if !self.seal.covers(key.resource()) {
            return Ok(false);
        }
        let select = sqlx::query("SELECT value FROM log WHERE revision = $1").bind(revision);
        let found = self.pool.read(async |c| select.fetch_optional(c).await).await.map_err(store_error)?;
        let Some(row) = found else { return Ok(false) };
        self.decoder().has_stale_seal(key, row.try_get(0).map_err(store_error)?).await
    }

    pub(super) async fn stale_seals(&self, resource: &Resource) -> Result<StaleSeals, StoreError> {
        const SELECT: &str = "SELECT l.namespace, l.name, l.revision, l.value FROM (\
            SELECT DISTINCT ON (namespace, name) revision, deleted FROM log WHERE resource = $1 \
            ORDER BY namespace, name, revision DESC) k JOIN log l ON l.revision = k.revision WHERE NOT k.deleted";
        let mut connection = self.pool.acquire().await.map_err(store_error)?;
        let mut rows = sqlx::query(SELECT).bind(resource.to_string()).fetch(&mut *connection);
        let mut found = StaleSeals::default();
        while let Some(row) = self.pool.with_timeout(rows.try_next()).await.map_err(store_error)? {
            let key = row::key(resource, &row, 0).map_err(store_error)?;
            let (revision, value) =
                (row.try_get(2).map_err(store_error)?, row.try_get(3).map_err(store_error)?);
            self.decoder().count_seal(&mut found, Some(key), revision, value).await?;
        }
        drop(rows);
        connection.release().await.map_err(store_error)?;
        found.stale.sort_by_key(|(_, revision)| *revision);
        Ok(found)
    }
}

/// Returns the revision at a time in Unix seconds of the clock of this process; 0 if no record reaches that far back.
pub(super) async fn revision_at(pool: &ConnectionPool, time: i64) -> Result<i64, sqlx::Error> {
    // Marks use the clock of the database.
    const SELECT: &str = concat!("SELECT ", clock::revision_at!("$2 - ", clock::clock_difference!("$1")));
    // Reads the clock once a connection is available: waiting for one must not count as a difference between the clocks.
    pool.read(async |c| sqlx::query_scalar(SELECT).bind(clock::process_clock()).bind(time).fetch_one(c).await)
        .await
}

/// Returns numbers by resource, sorted, from names of resources.
fn by_resource(rows: Vec<(String, i64)>) -> Vec<(Resource, u64)> {
    let named = rows.into_iter();
    let named = named.map(|(name, number)| (row::resource(&name), u64::try_from(number).unwrap_or_default()));
    let mut numbers: Vec<_> = named.collect();
    numbers.sort();
    numbers
}
