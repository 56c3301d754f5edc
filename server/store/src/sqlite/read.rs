//! Reads from the database: loading a resource, exact reads, history, owners. Uses read connections only.

use std::sync::Arc;

use futures::TryStreamExt;
use futures::future::BoxFuture;
use memchr::memmem;
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{AssertSqlSafe, Row};

use super::{codec, failure};
use crate::cache::{Cache, Slot};
use crate::event::{Event, EventType};
use crate::hub::Hub;
use crate::index::Indexer;
use crate::key::{Key, Resource};
use crate::metrics::Metrics;
use crate::record::{Record, Value};
use crate::store::{ListAt, Page, StoreError};
use crate::subscription::{History, HistoryPage, Selection};
use crate::unreadable::Unreadable;

/// What reading needs; shared by the store and its subscriptions.
pub(crate) struct Reader {
    pub(crate) pool: SqlitePool,
    pub(crate) indexer: Arc<dyn Indexer>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) metrics: Metrics,
}

/// The last state of each key up to a revision (`?2`), greater than a key (`?3`, `?4`), up to a namespace (`?5`).
/// The bare column `deleted` is that of the row with the greatest revision.
const STATES: &str = "SELECT namespace, name, max(revision) AS revision, deleted FROM log \
    WHERE resource = ?1 AND revision <= ?2 AND (namespace, name) > (?3, ?4) AND namespace <= ?5 \
    GROUP BY namespace, name HAVING deleted = 0";

impl Reader {
    /// Loads a resource into the cache unless it is there.
    pub(crate) async fn ensure_loaded(&self, slot: &Slot) -> Result<(), StoreError> {
        if slot.is_loaded() {
            return Ok(());
        }
        let _one_loads = slot.loading.lock().await;
        if slot.is_loaded() {
            return Ok(());
        }
        // Nothing of this resource is written before it is loaded: any revision read now is good.
        let revision = self.hub.revision();
        let (records, unreadable) = if slot.stored.load(std::sync::atomic::Ordering::Acquire) {
            self.current(slot).await?
        } else {
            Default::default()
        };
        if !unreadable.is_empty() {
            self.metrics.unreadable(&slot.resource, unreadable.len());
        }
        self.cache.load(slot, &records, unreadable, revision);
        Ok(())
    }

    async fn current(&self, slot: &Slot) -> Result<(Vec<Arc<Record>>, Vec<Unreadable>), StoreError> {
        // In revision order, which is the order of the file: every page is read once, however the keys lie.
        let select = format!(
            "SELECT l.namespace, l.name, l.revision, l.value FROM log l \
             WHERE l.revision IN (SELECT revision FROM ({STATES}))"
        );
        let select = sqlx::query(AssertSqlSafe(select)).bind(slot.id).bind(i64::MAX).bind("").bind("");
        let mut rows = select.bind(char::MAX.to_string()).fetch(&self.pool);
        let (mut records, mut unread) = (Vec::new(), Vec::new());
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            match self.record(&slot.resource, &row, 0) {
                Ok(record) => records.push(record),
                Err(StoreError::Corrupt { key, reason }) => {
                    unread.push((key, row.try_get(2).map_err(failed)?, reason));
                }
                Err(error) => return Err(error),
            }
        }
        // Its connection is needed for what follows.
        drop(rows);
        sort(&mut records);
        Ok((records, self.unreadable(unread).await?))
    }

    /// Objects that cannot be read, with their uids; each is logged.
    async fn unreadable(&self, rows: Vec<(Key, i64, String)>) -> Result<Vec<Unreadable>, StoreError> {
        let mut unreadable = Vec::with_capacity(rows.len());
        for (key, revision, reason) in rows {
            let uid = sqlx::query_scalar("SELECT uid FROM log WHERE revision = ?").bind(revision);
            let uid: Option<String> = uid.fetch_optional(&self.pool).await.map_err(failed)?;
            tracing::error!(
                object = %key,
                revision,
                reason,
                "a stored object cannot be read: it is left out of lists; `portico doctor` removes it"
            );
            unreadable.push(Unreadable::new(key, revision, &uid.unwrap_or_default(), &reason));
        }
        Ok(unreadable)
    }

    /// A record from the columns namespace, name, revision, value.
    fn record(&self, resource: &Resource, row: &SqliteRow, at: usize) -> Result<Arc<Record>, StoreError> {
        let namespace: &str = row.try_get(at).map_err(failed)?;
        let name: &str = row.try_get(at + 1).map_err(failed)?;
        let key = Key::new(resource, namespace.trim_end_matches('/'), name);
        let (revision, value) = (row.try_get(at + 2).map_err(failed)?, row.try_get(at + 3).map_err(failed)?);
        self.decode(key, revision, value).map(Arc::new)
    }

    fn decode(&self, key: Key, revision: i64, stored: &[u8]) -> Result<Record, StoreError> {
        let json = match codec::decode(stored) {
            Ok(json) => json,
            Err(reason) => return Err(StoreError::Corrupt { key, reason }),
        };
        match self.indexer.index(key.resource(), json) {
            Ok(indexed) => Ok(Record { key, revision, value: Value::new(json, indexed) }),
            Err(error) => Err(StoreError::Corrupt { key, reason: error.0 }),
        }
    }

    /// Refuses revisions that do not exist yet, or no more.
    fn check(&self, revision: i64) -> Result<(), StoreError> {
        let (oldest, current) = (self.hub.compacted(), self.hub.revision());
        match revision {
            _ if revision < oldest => Err(StoreError::Compacted { oldest }),
            _ if revision > current => Err(StoreError::Future { current }),
            _ => Ok(()),
        }
    }

    /// The answer to an exact read: from memory when nothing has changed since, else from the log.
    pub(crate) async fn list_at(&self, query: ListAt) -> Result<Page, StoreError> {
        self.check(query.revision)?;
        let slot = self.cache.slot(&query.scope.resource);
        let snapshot = slot.snapshot(self.hub.revision());
        if let Some(snapshot) = snapshot.filter(|snapshot| snapshot.changed() <= query.revision) {
            let range = snapshot.range(query.scope.namespace.as_deref(), query.after.as_deref());
            let (total, limit) = (range.len(), query.limit.unwrap_or(usize::MAX));
            let records: Vec<_> = range.take(limit).cloned().collect();
            let remaining = (total - records.len()) as u64;
            let unreadable = snapshot.unreadable_in(query.scope.namespace.as_deref()).cloned().collect();
            return Ok(Page { records, remaining, unreadable });
        }
        let page = self.list_from_log(&slot, &query).await;
        // Rows are deleted only after the compaction point has moved: what was read before is whole.
        self.check(query.revision)?;
        page
    }

    async fn list_from_log(&self, slot: &Slot, query: &ListAt) -> Result<Page, StoreError> {
        let (first, last_namespace) = match query.scope.namespace.as_ref().map(|name| format!("{name}/")) {
            Some(namespace) => (namespace.clone(), namespace),
            None => (String::new(), char::MAX.to_string()),
        };
        let mut after = query.after.as_deref().unwrap_or("").max(&first).to_owned();
        let mut page = Page::default();
        let select = format!(
            "SELECT k.namespace, k.name, k.revision, l.value FROM ({STATES} ORDER BY namespace, name LIMIT ?6) k \
             CROSS JOIN log l ON l.revision = k.revision"
        );
        let query_of = |sql: String, after: &str| {
            let (namespace, name) = split_path(after);
            let query = sqlx::query(AssertSqlSafe(sql)).bind(slot.id).bind(query.revision);
            query.bind(namespace.to_owned()).bind(name.to_owned()).bind(last_namespace.clone())
        };
        // What cannot be read takes no place in the page.
        while query.limit.is_none_or(|limit| page.records.len() < limit) {
            let wanted = query.limit.map(|limit| limit - page.records.len());
            let limit = wanted.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
            let select = query_of(select.clone(), &after).bind(limit);
            let rows = select.fetch_all(&self.pool).await.map_err(failed)?;
            let (last, count) = self.append(slot, &rows, &mut page)?;
            match last.filter(|_| wanted == Some(count)) {
                Some(last) => after = last,
                None => return Ok(page),
            }
        }
        let count = format!("SELECT count(*) FROM ({STATES})");
        let row = query_of(count, &after).fetch_one(&self.pool).await.map_err(failed)?;
        let remaining: i64 = row.try_get(0).map_err(failed)?;
        page.remaining = u64::try_from(remaining).unwrap_or(0);
        Ok(page)
    }

    /// Adds rows (namespace, name, revision, value) to a page; the greatest path among them, and how many they are.
    fn append(
        &self,
        slot: &Slot,
        rows: &[SqliteRow],
        page: &mut Page,
    ) -> Result<(Option<String>, usize), StoreError> {
        let mut records = Vec::with_capacity(rows.len());
        let mut last: Option<String> = None;
        for row in rows {
            let path = match self.record(&slot.resource, row, 0) {
                Ok(record) => {
                    records.push(record.clone());
                    record.key.path().to_owned()
                }
                Err(StoreError::Corrupt { key, reason }) => {
                    let revision = row.try_get(2).map_err(failed)?;
                    page.unreadable.push(Unreadable::new(key.clone(), revision, "", &reason));
                    key.path().to_owned()
                }
                Err(error) => return Err(error),
            };
            last = last.max(Some(path));
        }
        sort(&mut records);
        page.records.append(&mut records);
        Ok((last, rows.len()))
    }

    pub(crate) async fn get_at(&self, key: &Key, revision: i64) -> Result<Option<Arc<Record>>, StoreError> {
        const SELECT: &str = "SELECT namespace, name, revision, value, deleted FROM log \
            WHERE resource = ? AND namespace = ? AND name = ? AND revision <= ? ORDER BY revision DESC LIMIT 1";
        self.check(revision)?;
        let slot = self.cache.slot(key.resource());
        let (namespace, name) = split_path(key.path());
        let select = sqlx::query(SELECT).bind(slot.id).bind(namespace).bind(name).bind(revision);
        let row = select.fetch_optional(&self.pool).await.map_err(failed)?;
        self.check(revision)?;
        let Some(row) = row else { return Ok(None) };
        let deleted: i64 = row.try_get(4).map_err(failed)?;
        if deleted == 1 { Ok(None) } else { self.record(&slot.resource, &row, 0).map(Some) }
    }

    pub(crate) async fn dependents(&self, owner_uid: &str) -> Result<Vec<Key>, StoreError> {
        const SELECT: &str = "SELECT r.api_group, r.resource, o.namespace, o.name FROM owner o \
            JOIN resource r ON r.id = o.resource WHERE o.owner_uid = ?";
        let rows = sqlx::query(SELECT).bind(owner_uid).fetch_all(&self.pool).await.map_err(failed)?;
        self.keys(&rows)
    }

    pub(crate) async fn owners(&self) -> Result<Vec<String>, StoreError> {
        const SELECT: &str = "SELECT DISTINCT owner_uid FROM owner";
        sqlx::query_scalar(SELECT).fetch_all(&self.pool).await.map_err(failed)
    }

    pub(crate) async fn deleting(&self) -> Result<Vec<Key>, StoreError> {
        const MARK: &[u8] = b"\"deletionTimestamp\":";
        let (mut keys, mut unread) = (Vec::new(), Vec::new());
        for slot in self.cache.slots() {
            let Some(snapshot) = slot.snapshot(self.hub.revision()) else {
                unread.push(slot.id.to_string());
                continue;
            };
            let marked = |record: &&Arc<Record>| memmem::find(record.value.json(), MARK).is_some();
            keys.extend(snapshot.iter().filter(marked).map(|record| record.key.clone()));
        }
        keys.extend(self.deleting_in(&unread.join(",")).await?);
        keys.sort();
        Ok(keys)
    }

    /// The same of resources that are not in memory, by their numbers: current states first, as their values are read.
    async fn deleting_in(&self, resources: &str) -> Result<Vec<Key>, StoreError> {
        let select = format!(
            "SELECT r.api_group, r.resource, k.namespace, k.name FROM (SELECT resource, namespace, name, \
             max(revision) AS revision, deleted FROM log WHERE resource IN ({resources}) \
             GROUP BY resource, namespace, name HAVING deleted = 0) k CROSS JOIN log l ON l.revision = k.revision \
             JOIN resource r ON r.id = k.resource WHERE instr(l.value, CAST('deletionTimestamp\":' AS BLOB)) > 0"
        );
        let rows = sqlx::query(AssertSqlSafe(select)).fetch_all(&self.pool).await.map_err(failed)?;
        self.keys(&rows)
    }

    /// Keys from the columns group, resource, namespace, name; sorted.
    fn keys(&self, rows: &[SqliteRow]) -> Result<Vec<Key>, StoreError> {
        let mut keys = rows
            .iter()
            .map(|row| {
                let resource = Resource::new(row.try_get::<String, _>(0)?, row.try_get::<String, _>(1)?);
                let namespace: &str = row.try_get(2)?;
                let slot = self.cache.slot(&resource);
                Ok(Key::new(&slot.resource, namespace.trim_end_matches('/'), row.try_get(3)?))
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed)?;
        keys.sort();
        Ok(keys)
    }

    pub(crate) async fn revision_at(&self, time: i64) -> Result<i64, StoreError> {
        let select = sqlx::query_scalar("SELECT coalesce(max(revision), 0) FROM mark WHERE at <= ?");
        select.bind(time).fetch_one(&self.pool).await.map_err(failed)
    }

    pub(crate) async fn resources_in(&self, namespace: &str) -> Result<Vec<Resource>, StoreError> {
        const SELECT: &str = "SELECT r.id FROM resource r WHERE EXISTS (SELECT 1 FROM log l \
            WHERE l.resource = r.id AND l.namespace = ? AND l.deleted = 0 AND NOT EXISTS (SELECT 1 FROM log n \
            WHERE n.resource = l.resource AND n.namespace = l.namespace AND n.name = l.name \
            AND n.revision > l.revision))";
        let select = sqlx::query_scalar(SELECT).bind(format!("{namespace}/"));
        let ids: Vec<i64> = select.fetch_all(&self.pool).await.map_err(failed)?;
        let mut resources: Vec<_> =
            ids.into_iter().filter_map(|id| self.cache.by_id(id)).map(|slot| slot.resource.clone()).collect();
        resources.sort();
        Ok(resources)
    }

    pub(crate) async fn counts(&self) -> Result<Vec<(Resource, u64)>, StoreError> {
        // Of a group SQLite takes the other columns from the row that holds its maximum: here the current state.
        const SELECT: &str = "SELECT resource, COUNT(*) FROM (SELECT resource, deleted, MAX(revision) FROM log \
            GROUP BY resource, namespace, name) WHERE deleted = 0 GROUP BY resource";
        let rows: Vec<(i64, i64)> = sqlx::query_as(SELECT).fetch_all(&self.pool).await.map_err(failed)?;
        let named = rows.into_iter().filter_map(|(id, count)| {
            let slot = self.cache.by_id(id)?;
            Some((slot.resource.clone(), u64::try_from(count).unwrap_or_default()))
        });
        let mut counts: Vec<_> = named.collect();
        counts.sort();
        Ok(counts)
    }

    async fn past(
        &self,
        selection: Selection,
        after: i64,
        until: i64,
        limit: usize,
        max_bytes: usize,
    ) -> Result<HistoryPage, StoreError> {
        const SELECT: &str = "SELECT l.resource, l.namespace, l.name, l.revision, l.value, l.deleted, p.revision, p.value \
            FROM log l LEFT JOIN log p ON p.revision = l.previous AND l.previous > 0 \
            WHERE l.revision > ?1 AND l.revision <= ?2 AND (?3 = 0 OR l.resource = ?3) ORDER BY l.revision";
        let only = match &selection {
            Selection::Scope(scope) => self.cache.slot(&scope.resource).id,
            Selection::Filter(_) => 0,
        };
        let resources = self.cache.resources();
        let mut rows = sqlx::query(SELECT).bind(after).bind(until).bind(only).fetch(&self.pool);
        let (mut events, mut bytes, mut more) = (Vec::new(), 0, true);
        while events.len() < limit && bytes < max_bytes {
            let Some(row) = rows.try_next().await.map_err(failed)? else {
                more = false;
                break;
            };
            let id: i64 = row.try_get(0).map_err(failed)?;
            // A resource that is written has a slot: the writer made it.
            let Some(resource) = resources.get(&id) else { continue };
            if selection.takes_resource(resource) {
                let event = self.event(resource, &row)?;
                bytes += event.record.weight() + event.weight();
                events.push(Arc::new(event));
            }
        }
        Ok(HistoryPage { events, more })
    }

    fn event(&self, resource: &Resource, row: &SqliteRow) -> Result<Event, StoreError> {
        let record = self.record(resource, row, 1)?;
        let deleted: i64 = row.try_get(5).map_err(failed)?;
        let revision: Option<i64> = row.try_get(6).map_err(failed)?;
        let previous = match revision {
            Some(revision) => {
                let value = row.try_get(7).map_err(failed)?;
                let previous = match self.decode(record.key.clone(), revision, value) {
                    Err(StoreError::Corrupt { key, .. }) => {
                        Record { key, revision, value: Value::unreadable(record.value.uid()) }
                    }
                    decoded => decoded?,
                };
                Some(Arc::new(previous))
            }
            None => None,
        };
        let event_type = match (deleted, &previous) {
            (1, _) => EventType::Deleted,
            (_, Some(_)) => EventType::Modified,
            (_, None) => EventType::Added,
        };
        Ok(Event { event_type, record, previous })
    }
}

impl History for Reader {
    fn events(
        &self,
        selection: Selection,
        after: i64,
        until: i64,
        limit: usize,
        max_bytes: usize,
    ) -> BoxFuture<'_, Result<HistoryPage, StoreError>> {
        Box::pin(self.past(selection, after, until, limit, max_bytes))
    }
}

/// Sorts pointers, where SQL's ORDER BY would sort the values, too.
fn sort(records: &mut [Arc<Record>]) {
    records.sort_by(|a, b| a.key.path().cmp(b.key.path()));
}

/// The columns namespace (with its closing '/') and name of a path.
pub(crate) fn split_path(path: &str) -> (&str, &str) {
    path.split_at(path.find('/').map_or(0, |slash| slash + 1))
}

/// What a failed read is to the caller.
pub(crate) fn failed(error: sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::PoolClosed => StoreError::Closed,
        error => {
            tracing::error!(%error, "the database could not be read");
            StoreError::Unavailable(failure::reason(&error).to_owned())
        }
    }
}
