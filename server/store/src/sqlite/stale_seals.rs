//! Finds objects with stale seals.

use futures::TryStreamExt;
use sqlx::{AssertSqlSafe, Row};

use super::reader::{CURRENT, Reader, store_error};
use super::row;
use crate::error::StoreError;
use crate::key::{Key, Resource};
use crate::store::StaleSeals;

impl Reader {
    pub(crate) fn has_seal_rules(&self) -> bool {
        self.seal.is_active()
    }

    pub(crate) fn sealed_resources(&self) -> Vec<Resource> {
        self.seal.covered_resources(self.cache.resources().into_values())
    }

    pub(crate) async fn has_stale_seal(&self, key: &Key, revision: i64) -> Result<bool, StoreError> {
        if !self.seal.covers(key.resource()) {
            return Ok(false);
        }
        let select = sqlx::query("SELECT value FROM log WHERE revision = ?").bind(revision);
        let Some(row) = select.fetch_optional(&self.pool).await.map_err(store_error)? else {
            return Ok(false);
        };
        self.decoder().has_stale_seal(key, row.try_get_unchecked(0).map_err(store_error)?).await
    }

    pub(crate) async fn stale_seals(&self, resource: &Resource) -> Result<StaleSeals, StoreError> {
        let slot = self.cache.slot(resource);
        let select = format!(
            "SELECT l.namespace, l.name, l.revision, l.value FROM log l \
             WHERE l.revision IN (SELECT revision FROM ({CURRENT}))"
        );
        let mut rows = sqlx::query(AssertSqlSafe(select)).bind(slot.id).bind(i64::MAX).fetch(&self.pool);
        let mut found = StaleSeals::default();
        while let Some(row) = rows.try_next().await.map_err(store_error)? {
            let (revision, value): (i64, &[u8]) =
                (row.try_get(2).map_err(store_error)?, row.try_get_unchecked(3).map_err(store_error)?);
            let key = row::key(&slot.resource, &row, 0).map_err(store_error)?.ok();
            self.decoder().count_seal(&mut found, key, revision, value).await?;
        }
        Ok(found)
    }
}
