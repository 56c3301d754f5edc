//! Finds objects with stale seals.

use futures::TryStreamExt;
use sqlx::{AssertSqlSafe, Row};

use super::read::{CURRENT, Reader, failed};
use super::row;
use crate::error::StoreError;
use crate::key::{Key, Resource};
use crate::store::SealedOtherwise;

impl Reader {
    pub(crate) fn has_seal_rules(&self) -> bool {
        self.seal.is_active()
    }

    pub(crate) fn sealed_resources(&self) -> Vec<Resource> {
        self.seal.covered(self.cache.resources().into_values())
    }

    pub(crate) async fn is_sealed_otherwise(&self, key: &Key, revision: i64) -> Result<bool, StoreError> {
        if !self.seal.covers(key.resource()) {
            return Ok(false);
        }
        let select = sqlx::query("SELECT value FROM log WHERE revision = ?").bind(revision);
        let Some(row) = select.fetch_optional(&self.pool).await.map_err(failed)? else { return Ok(false) };
        self.decoder().is_stale(key, row.try_get_unchecked(0).map_err(failed)?).await
    }

    pub(crate) async fn sealed_otherwise(&self, resource: &Resource) -> Result<SealedOtherwise, StoreError> {
        let slot = self.cache.slot(resource);
        let select = format!(
            "SELECT l.namespace, l.name, l.revision, l.value FROM log l \
             WHERE l.revision IN (SELECT revision FROM ({CURRENT}))"
        );
        let mut rows = sqlx::query(AssertSqlSafe(select)).bind(slot.id).bind(i64::MAX).fetch(&self.pool);
        let mut found = SealedOtherwise::default();
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            let (revision, value): (i64, &[u8]) =
                (row.try_get(2).map_err(failed)?, row.try_get_unchecked(3).map_err(failed)?);
            let key = row::key(&slot.resource, &row, 0).map_err(failed)?.ok();
            self.decoder().count(&mut found, key, revision, value).await?;
        }
        Ok(found)
    }
}
