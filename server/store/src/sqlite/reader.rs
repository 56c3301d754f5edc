//! Reads states of resources, current or at an exact revision. Uses read connections only.
//!
//! `history` reads for watches, `lookup` across resources.

use std::borrow::Cow;
use std::sync::Arc;

use futures::TryStreamExt;
use sqlx::sqlite::SqlitePool;
use sqlx::{AssertSqlSafe, Row};
use tokio::sync::Semaphore;

use super::failure;
use super::row;
use crate::cache::{Cache, Slot};
use crate::current_state::{CurrentState, ObjectLookup};
use crate::decode::{DecodeError, Decoder};
use crate::error::StoreError;
use crate::exact_read::{self, KeyRange};
use crate::hub::Hub;
use crate::index::Indexer;
use crate::key::{Key, split_path};
use crate::loader::Loader;
use crate::metrics::Metrics;
use crate::record::Record;
use crate::seal::Seal;
use crate::store::{ListAt, Page};
use crate::unreadable::Unreadable;

/// Maximum number of reads of an object whose history is compacted during the read.
const MAX_READS: usize = 5;

/// Dependencies of reads, shared by the store and its subscriptions.
pub(crate) struct Reader {
    pub(crate) pool: SqlitePool,
    pub(crate) indexer: Arc<dyn Indexer>,
    pub(crate) seal: Arc<Seal>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) metrics: Metrics,
    /// One permit for each concurrent read of history.
    pub(crate) history_permits: Semaphore,
    /// One permit for full scans, which run one at a time on an additional connection.
    pub(crate) scan_permits: Semaphore,
}

/// State of each key of a resource (`?1`) at a revision (`?2`).
pub(crate) const CURRENT: &str = "SELECT namespace, name, max(revision) AS revision, deleted FROM log \
    WHERE resource = ?1 AND revision <= ?2 GROUP BY namespace, name HAVING deleted = 0";

impl KeyRange {
    /// Returns the condition on keys after a key (`?3`, `?4`), in the namespace or in all.
    pub(super) fn keys(&self) -> &'static str {
        match self.namespace {
            Some(_) => "namespace = ?3 AND name > ?4",
            None => "(namespace, name) > (?3, ?4)",
        }
    }

    /// Returns a query for the last state of each key of a resource (`?1`) up to a revision (`?2`) after a key (`?3`,
    /// `?4`), in key order, limited to `?5` (-1 for all) with offset `?6`. The bare column `deleted` is that of the row
    /// with the greatest revision.
    ///
    /// Pages use an offset and do not continue after the last key, which may be damaged.
    fn states(&self) -> String {
        let keys = self.keys();
        format!(
            "SELECT namespace, name, max(revision) AS revision, deleted FROM log \
             WHERE resource = ?1 AND revision <= ?2 AND {keys} \
             GROUP BY namespace, name HAVING deleted = 0 ORDER BY namespace, name LIMIT ?5 OFFSET ?6"
        )
    }
}

impl Reader {
    /// Returns the decoder of values.
    pub(crate) fn decoder(&self) -> Decoder<'_> {
        Decoder { indexer: &*self.indexer, seal: &self.seal, skips_unopened: false }
    }

    /// Returns the current state of a resource.
    pub(crate) async fn current_state(&self, slot: &Slot) -> Result<CurrentState, StoreError> {
        self.ensure_loaded(slot).await?;
        self.hub.wait_until_readable().await;
        let revision = self.hub.revision();
        Ok(slot.snapshot(revision).map_or(CurrentState::Uncached(revision), CurrentState::Cached))
    }

    /// Returns the current state of an object.
    pub(crate) async fn find(&self, key: &Key) -> Result<ObjectLookup, StoreError> {
        let slot = self.cache.slot(key.resource());
        self.ensure_loaded(&slot).await?;
        if let Some(snapshot) = slot.snapshot(self.hub.revision()) {
            return Ok(ObjectLookup::in_snapshot(&snapshot, key));
        }
        self.metrics.reads_past_cache.inc();
        let mut last = StoreError::Closed;
        for _ in 0..MAX_READS {
            let revision = self.hub.revision();
            match self.read_at(&slot, key, revision).await {
                Ok(object) => {
                    if let Some(Err(object)) = &object {
                        self.cache.note_unreadable(&slot, revision, std::slice::from_ref(object));
                    }
                    return Ok(ObjectLookup { revision, object });
                }
                Err(error @ StoreError::Compacted { .. }) => {
                    last = error;
                    self.hub.wait_until_readable().await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Answers an exact read: from memory if nothing has changed since, otherwise from the log.
    pub(crate) async fn list_at(&self, query: ListAt) -> Result<Page, StoreError> {
        let slot = self.cache.slot(&query.scope.resource);
        if let Some(page) = exact_read::page_from_memory(&self.hub, &slot, &query)? {
            return Ok(page);
        }
        self.list_from_log(&slot, &query).await
    }

    async fn list_from_log(&self, slot: &Slot, query: &ListAt) -> Result<Page, StoreError> {
        let mut page = Page::default();
        // Checked again with the compaction point that the statement sees, which a later compaction does not change.
        self.hub.check_readable(query.revision)?;
        let Some(range) = KeyRange::new(query, |text| Cow::Borrowed(text)) else { return Ok(page) };
        let states = range.states();
        let select = format!(
            "SELECT k.namespace, k.name, l.revision, l.value, m.compacted, l.checksum \
             FROM (SELECT compacted FROM meta WHERE id = 1) m LEFT JOIN ({states}) k \
             LEFT JOIN log l ON l.revision = k.revision"
        );
        let query_of = |sql: String, limit: i64, rows_read: usize| {
            let query = sqlx::query(AssertSqlSafe(sql)).bind(slot.id).bind(query.revision);
            let query = query.bind(range.after.0.clone()).bind(range.after.1.clone());
            query.bind(limit).bind(i64::try_from(rows_read).unwrap_or(i64::MAX))
        };
        let mut rows_read = 0;
        // Unreadable objects do not count against the limit of the page.
        while query.limit.is_none_or(|limit| page.records.len() < limit) {
            let remaining_limit = query.limit.map(|limit| limit - page.records.len());
            let limit = remaining_limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
            let mut rows = query_of(select.clone(), limit, rows_read).fetch(&self.pool);
            let rows_before = rows_read;
            let mut records = Vec::new();
            while let Some(row) = rows.try_next().await.map_err(store_error)? {
                let oldest: i64 = row.try_get_unchecked(4).map_err(store_error)?;
                if query.revision < oldest {
                    return Err(StoreError::Compacted { oldest });
                }
                // If there are no states, the only row contains the compaction point.
                if row.try_get_unchecked::<Option<i64>, _>(2).map_err(store_error)?.is_none() {
                    continue;
                }
                rows_read += 1;
                match self.decoder().decode_row(&slot.resource, &row, 0).await.map_err(decode_error)? {
                    Ok(record) => records.push(Arc::new(record)),
                    Err(object) => page.unreadable.push(object),
                }
            }
            sort(&mut records);
            page.records.append(&mut records);
            if remaining_limit != Some(rows_read - rows_before) {
                return Ok(page);
            }
        }
        let count = async |limit: Option<i64>| {
            let _permit = self.scan_permits.acquire().await.map_err(|_| StoreError::Closed)?;
            let count = query_of(format!("SELECT count(*) FROM ({states})"), limit.unwrap_or(-1), rows_read);
            count.fetch_one(&self.pool).await.and_then(|row| row.try_get(0)).map_err(store_error)
        };
        page.remaining = exact_read::remaining(&self.cache, slot, query, &page, rows_read, count).await?;
        self.hub.check_not_compacted(query.revision)?;
        Ok(page)
    }

    pub(crate) async fn get_at(&self, key: &Key, revision: i64) -> Result<Option<Arc<Record>>, StoreError> {
        self.hub.check_readable(revision)?;
        let slot = self.cache.slot(key.resource());
        match self.read_at(&slot, key, revision).await? {
            Some(Ok(record)) => Ok(Some(record)),
            Some(Err(object)) => Err(StoreError::corrupt(&object)),
            None => Ok(None),
        }
    }

    /// Reads an object at a revision.
    async fn read_at(
        &self,
        slot: &Slot,
        key: &Key,
        revision: i64,
    ) -> Result<Option<Result<Arc<Record>, Unreadable>>, StoreError> {
        const SELECT: &str = "SELECT revision, value, deleted, uid, checksum FROM log WHERE resource = ? AND namespace = ? \
            AND name = ? AND revision <= ? ORDER BY revision DESC LIMIT 1";
        let (namespace, name) = split_path(key.path());
        let select = sqlx::query(SELECT).bind(slot.id).bind(namespace).bind(name).bind(revision);
        let row = select.fetch_optional(&self.pool).await.map_err(store_error)?;
        // Rows are deleted only after the compaction point has moved, so data that was read before is complete.
        self.hub.check_not_compacted(revision)?;
        let Some(row) = row else { return Ok(None) };
        let (revision, deleted): (i64, i64) =
            (row.try_get(0).map_err(store_error)?, row.try_get_unchecked(2).map_err(store_error)?);
        if deleted == 1 {
            return Ok(None);
        }
        let value = row.try_get_unchecked(1).map_err(store_error)?;
        let checksum = row::checksum(&row, "checksum").map_err(store_error)?;
        let uid = row::text(&row, 3).map_err(store_error)?.valid().unwrap_or_default();
        let decoded =
            self.decoder().decode(key.clone(), revision, value, checksum).await.map_err(decode_error)?;
        Ok(Some(decoded.map(Arc::new).map_err(|object| object.with_uid(uid))))
    }
}

/// Sorts pointers; SQL's ORDER BY would sort the values as well.
fn sort(records: &mut [Arc<Record>]) {
    records.sort_by(|a, b| a.key.path().cmp(b.key.path()));
}

/// Converts the error of a value that cannot be decoded.
pub(crate) fn decode_error(error: DecodeError) -> StoreError {
    match error {
        DecodeError::Database(error) => store_error(error),
        DecodeError::Sealed { key, reason } => StoreError::Sealed { key, reason },
    }
}

/// Converts the error of a failed read.
pub(crate) fn store_error(error: sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::PoolClosed => StoreError::Closed,
        error => {
            tracing::error!(error = failure::log_text(&error), "cannot read from the database");
            StoreError::Unavailable(failure::reason(&error).to_owned())
        }
    }
}
