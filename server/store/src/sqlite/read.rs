//! Reads the current state of resources, and what they were at an exact revision. Uses read connections only.
//!
//! Beside it `history` reads for watches, `find` across resources.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::TryStreamExt;
use sqlx::sqlite::SqlitePool;
use sqlx::{AssertSqlSafe, Row};
use tokio::sync::Semaphore;

use super::failure;
use super::row;
use crate::cache::{Cache, Slot};
use crate::decode::{DecodeError, Decoder};
use crate::error::StoreError;
use crate::exact::Range;
use crate::hub::Hub;
use crate::index::Indexer;
use crate::key::{Key, split_path};
use crate::metrics::Metrics;
use crate::record::Record;
use crate::seal::Seal;
use crate::store::{ListAt, Page};
use crate::submit::Load;
use crate::unreadable::Unreadable;

/// What reading needs; shared by the store and its subscriptions.
pub(crate) struct Reader {
    pub(crate) pool: SqlitePool,
    pub(crate) indexer: Arc<dyn Indexer>,
    pub(crate) seal: Arc<Seal>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) metrics: Metrics,
    /// One permit for each part of history that is read at a time.
    pub(crate) resumes: Semaphore,
}

/// The current state of each key of a resource (`?1`).
pub(crate) const CURRENT: &str = "SELECT namespace, name, max(revision) AS revision, deleted FROM log \
    WHERE resource = ?1 GROUP BY namespace, name HAVING deleted = 0";

impl Range {
    /// The last state of each key of a resource (`?1`) up to a revision (`?2`) behind a key (`?3`, `?4`), in key order: so many
    /// (`?5`, -1 for all) after the first ones (`?6`). The bare column `deleted` is that of the row with the greatest revision.
    ///
    /// Parts are counted from their beginning, not continued behind their last key: that one may be damaged.
    fn states(&self) -> String {
        let keys = match self.namespace {
            Some(_) => "namespace = ?3 AND name > ?4",
            None => "(namespace, name) > (?3, ?4)",
        };
        format!(
            "SELECT namespace, name, max(revision) AS revision, deleted FROM log \
             WHERE resource = ?1 AND revision <= ?2 AND {keys} \
             GROUP BY namespace, name HAVING deleted = 0 ORDER BY namespace, name LIMIT ?5 OFFSET ?6"
        )
    }
}

impl Reader {
    /// What reads values.
    pub(crate) fn decoder(&self) -> Decoder<'_> {
        Decoder { indexer: &*self.indexer, seal: &self.seal }
    }

    async fn current(&self, slot: &Slot) -> Result<(Vec<Arc<Record>>, Vec<Unreadable>), StoreError> {
        // In revision order, which is the order of the file: every page is read once, however the keys lie.
        let select = format!(
            "SELECT l.namespace, l.name, l.revision, l.value FROM log l \
             WHERE l.revision IN (SELECT revision FROM ({CURRENT}))"
        );
        let mut rows = sqlx::query(AssertSqlSafe(select)).bind(slot.id).fetch(&self.pool);
        let (mut records, mut unreadable) = (Vec::new(), Vec::new());
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            match self.decoder().state(&slot.resource, &row, 0).await.map_err(undecoded)? {
                Ok(record) => records.push(Arc::new(record)),
                Err(object) => unreadable.push(object),
            }
        }
        // Its connection is needed for what follows.
        drop(rows);
        sort(&mut records);
        Ok((records, self.named(unreadable).await?))
    }

    /// Objects that cannot be read, with their uids; each is logged.
    async fn named(&self, objects: Vec<Unreadable>) -> Result<Vec<Unreadable>, StoreError> {
        let mut named = Vec::with_capacity(objects.len());
        for object in objects {
            let uid = sqlx::query("SELECT uid FROM log WHERE revision = ?").bind(object.revision());
            let uid = uid.fetch_optional(&self.pool).await.map_err(failed)?;
            let uid = uid.as_ref().map(|row| row::text(row, 0)).transpose().map_err(failed)?;
            tracing::error!(
                object = %object.key(),
                revision = object.revision(),
                reason = object.reason(),
                "a stored object cannot be read: it is left out of lists{}",
                if object.is_sealed() { "" } else { "; `portico doctor` removes it" }
            );
            named.push(object.with_uid(uid.and_then(row::Text::good).unwrap_or_default()));
        }
        Ok(named)
    }

    /// The answer to an exact read: from memory when nothing has changed since, else from the log.
    pub(crate) async fn list_at(&self, query: ListAt) -> Result<Page, StoreError> {
        self.hub.check(query.revision)?;
        let slot = self.cache.slot(&query.scope.resource);
        let snapshot = slot.snapshot(self.hub.revision());
        if let Some(snapshot) = snapshot.filter(|snapshot| snapshot.changed() <= query.revision) {
            return Ok(Page::of(&snapshot, &query));
        }
        let page = self.list_from_log(&slot, &query).await;
        // Rows are deleted only after the compaction point has moved: what was read before is whole.
        self.hub.check(query.revision)?;
        page
    }

    async fn list_from_log(&self, slot: &Slot, query: &ListAt) -> Result<Page, StoreError> {
        let mut page = Page::default();
        let Some(range) = Range::new(query, |text| Cow::Borrowed(text)) else { return Ok(page) };
        let states = range.states();
        let select = format!(
            "SELECT k.namespace, k.name, k.revision, l.value FROM ({states}) k \
             CROSS JOIN log l ON l.revision = k.revision"
        );
        let query_of = |sql: String, limit: i64, seen: usize| {
            let query = sqlx::query(AssertSqlSafe(sql)).bind(slot.id).bind(query.revision);
            let query = query.bind(range.after.0.clone()).bind(range.after.1.clone());
            query.bind(limit).bind(i64::try_from(seen).unwrap_or(i64::MAX))
        };
        let mut seen = 0;
        // What cannot be read takes no place in the page.
        while query.limit.is_none_or(|limit| page.records.len() < limit) {
            let wanted = query.limit.map(|limit| limit - page.records.len());
            let limit = wanted.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
            let mut rows = query_of(select.clone(), limit, seen).fetch(&self.pool);
            let before = seen;
            let mut records = Vec::new();
            while let Some(row) = rows.try_next().await.map_err(failed)? {
                seen += 1;
                match self.decoder().state(&slot.resource, &row, 0).await.map_err(undecoded)? {
                    Ok(record) => records.push(Arc::new(record)),
                    Err(object) => page.unreadable.push(object),
                }
            }
            sort(&mut records);
            page.records.append(&mut records);
            if wanted != Some(seen - before) {
                return Ok(page);
            }
        }
        let count =
            query_of(format!("SELECT count(*) FROM ({states})"), if query.counted { -1 } else { 1 }, seen);
        let row = count.fetch_one(&self.pool).await.map_err(failed)?;
        let remaining: i64 = row.try_get(0).map_err(failed)?;
        page.remaining = u64::try_from(remaining).unwrap_or(0);
        Ok(page)
    }

    pub(crate) async fn get_at(&self, key: &Key, revision: i64) -> Result<Option<Arc<Record>>, StoreError> {
        const SELECT: &str = "SELECT revision, value, deleted FROM log WHERE resource = ? AND namespace = ? \
            AND name = ? AND revision <= ? ORDER BY revision DESC LIMIT 1";
        self.hub.check(revision)?;
        let slot = self.cache.slot(key.resource());
        let (namespace, name) = split_path(key.path());
        let select = sqlx::query(SELECT).bind(slot.id).bind(namespace).bind(name).bind(revision);
        let row = select.fetch_optional(&self.pool).await.map_err(failed)?;
        self.hub.check(revision)?;
        let Some(row) = row else { return Ok(None) };
        let (revision, deleted): (i64, i64) =
            (row.try_get(0).map_err(failed)?, row.try_get_unchecked(2).map_err(failed)?);
        if deleted == 1 {
            return Ok(None);
        }
        let value = row.try_get_unchecked(1).map_err(failed)?;
        let record = self.decoder().value(key.clone(), revision, value).await.map_err(undecoded)?;
        Ok(Some(Arc::new(record.map_err(|object| StoreError::corrupt(&object))?)))
    }
}

impl Load for Reader {
    fn cache(&self) -> &Cache {
        &self.cache
    }

    async fn ensure_loaded(&self, slot: &Slot) -> Result<(), StoreError> {
        if slot.is_loaded() {
            return Ok(());
        }
        let _one_loads = slot.loading.lock().await;
        if slot.is_loaded() {
            return Ok(());
        }
        // Nothing of this resource is written before it is loaded: any revision read now is good.
        let revision = self.hub.revision();
        let (records, unreadable) =
            if slot.stored.load(Ordering::Acquire) { self.current(slot).await? } else { Default::default() };
        if !unreadable.is_empty() {
            self.metrics.unreadable(&slot.resource, unreadable.len());
        }
        self.cache.load(slot, &records, unreadable, revision);
        Ok(())
    }
}

/// Sorts pointers, where SQL's ORDER BY would sort the values, too.
fn sort(records: &mut [Arc<Record>]) {
    records.sort_by(|a, b| a.key.path().cmp(b.key.path()));
}

/// What a value is to the caller of which nothing can be said.
pub(crate) fn undecoded(error: DecodeError) -> StoreError {
    match error {
        DecodeError::Database(error) => failed(error),
        DecodeError::Sealed { key, reason } => StoreError::Sealed { key, reason },
    }
}

/// What a failed read is to the caller.
pub(crate) fn failed(error: sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::PoolClosed => StoreError::Closed,
        error => {
            tracing::error!(error = failure::logged(&error), "the database could not be read");
            StoreError::Unavailable(failure::reason(&error).to_owned())
        }
    }
}
