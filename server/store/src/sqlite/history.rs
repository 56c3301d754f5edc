//! Reads past events for resuming watches, in bounded pages with limited concurrency.

use std::sync::Arc;

use futures::TryStreamExt;
use futures::future::BoxFuture;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row};

use super::reader::{Reader, decode_error, store_error};
use super::row;
use crate::error::StoreError;
use crate::event::{Event, EventType};
use crate::key::Resource;
use crate::record::{Record, Value};
use crate::subscription::history::{History, HistoryPage, PageExtent};
use crate::subscription::selection::Selection;

/// State `p` that a row `l` supersedes. The revision alone does not identify it: a row with a damaged key or a damaged `previous`
/// may point to the current state of another object. Plus signs force SQLite to look it up by revision.
pub(crate) const PREVIOUS: &str = "p.revision = l.previous AND l.previous > 0 AND +p.resource = l.resource \
    AND +p.namespace = l.namespace AND +p.name = l.name";

/// Rows of some resources in a range of revisions. Looked up by revision, regardless of SQLite's planner.
struct RowRange {
    /// Resource IDs, joined by commas.
    resources: String,
    /// Namespace, if the rows are limited to one.
    namespace: Option<Arc<str>>,
    after: i64,
}

impl Reader {
    async fn past_events(
        &self,
        selection: Selection,
        after: i64,
        until: i64,
        limit: usize,
        max_bytes: usize,
    ) -> Result<HistoryPage, StoreError> {
        // Every written resource has a slot, which the writer created.
        let mut resources = self.cache.resources();
        resources.retain(|_, resource| selection.selects_resource(resource));
        let numbers: Vec<String> = resources.keys().map(ToString::to_string).collect();
        let rows = RowRange { resources: numbers.join(","), namespace: selection.namespace(), after };
        // Limits the number of concurrent reads: callers wait here, and occupy no connection that other reads need.
        let _permit = self.history_permits.acquire().await.map_err(|_| StoreError::Closed)?;
        let extent = self.page_extent(&rows, until, limit, max_bytes, &resources).await?;
        let mut events = Vec::with_capacity(extent.events);
        if extent.events > 0 {
            let select = format!(
                "SELECT l.resource, l.namespace, l.name, l.revision, l.value, l.deleted, l.previous, p.value, \
                 l.checksum, p.checksum AS previous_checksum \
                 FROM log l LEFT JOIN log p ON {PREVIOUS} WHERE l.revision > ?1 AND l.revision <= ?2 \
                 AND +l.resource IN ({}) AND (?3 IS NULL OR +l.namespace = ?3) ORDER BY l.revision",
                rows.resources
            );
            let namespace = rows.namespace.as_ref().map(|namespace| format!("{namespace}/"));
            let select = sqlx::query(AssertSqlSafe(select)).bind(after).bind(extent.until).bind(namespace);
            // Not a persistent statement: the text differs for each resource.
            let mut found = select.persistent(false).fetch(&self.pool);
            while let Some(row) = found.try_next().await.map_err(store_error)? {
                let id: i64 = row.try_get(0).map_err(store_error)?;
                let Some(resource) = resources.get(&id) else { continue };
                events.push(Arc::new(self.event(resource, &row).await?));
            }
        }
        Ok(HistoryPage { events, has_more: extent.has_more })
    }

    /// Returns the extent of at most `limit` events with at most `max_bytes`, but at least one: from the lengths of their
    /// values, which SQLite knows without reading them.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if an event may belong to the namespace and its key cannot be read.
    async fn page_extent(
        &self,
        rows: &RowRange,
        until: i64,
        limit: usize,
        max_bytes: usize,
        resources: &std::collections::HashMap<i64, Resource>,
    ) -> Result<PageExtent, StoreError> {
        let select = format!(
            "SELECT l.resource, l.namespace, l.name, l.revision, length(l.value) + ifnull(length(p.value), 0) \
             FROM log l LEFT JOIN log p ON {PREVIOUS} WHERE l.revision > ?1 AND l.revision <= ?2 \
             AND +l.resource IN ({}) ORDER BY l.revision",
            rows.resources
        );
        let select = sqlx::query(AssertSqlSafe(select)).bind(rows.after).bind(until);
        let mut found = select.persistent(false).fetch(&self.pool);
        let mut extent = PageExtent::new(rows.after);
        while let Some(row) = found.try_next().await.map_err(store_error)? {
            let id: i64 = row.try_get(0).map_err(store_error)?;
            let Some(resource) = resources.get(&id) else { continue };
            match (row::key(resource, &row, 1).map_err(store_error)?, &rows.namespace) {
                (Ok(key), Some(namespace)) if key.namespace() != &**namespace => continue,
                (Err(damaged), Some(namespace)) if !damaged.may_be_in(namespace) => continue,
                (Err(damaged), _) => {
                    let reason = damaged.reason().to_owned();
                    return Err(StoreError::Corrupt { key: damaged.remains, reason });
                }
                (Ok(_), _) => {}
            }
            let length: i64 = row.try_get_unchecked(4).map_err(store_error)?;
            if !extent.push(row.try_get(3).map_err(store_error)?, length, limit, max_bytes) {
                break;
            }
        }
        Ok(extent)
    }

    async fn event(&self, resource: &Resource, row: &SqliteRow) -> Result<Event, StoreError> {
        let decoded = self.decoder().decode_row(resource, row, 1).await.map_err(decode_error)?;
        let record = decoded.map_err(|object| StoreError::corrupt(&object))?;
        let deleted: i64 = row.try_get_unchecked(5).map_err(store_error)?;
        let previous = match row.try_get_unchecked(6).map_err(store_error)? {
            revision @ 1.. => Some(Arc::new(self.previous(&record, revision, row).await?)),
            _ => None,
        };
        let event_type = EventType::of(deleted == 1, previous.is_some());
        Ok(Event {
            event_type,
            record: Arc::new(record),
            previous,
            unreadable: None,
            is_record_cached: false,
        })
    }

    /// Returns the state before a record. A state of another object counts as unreadable.
    async fn previous(&self, record: &Record, revision: i64, row: &SqliteRow) -> Result<Record, StoreError> {
        let value: &[u8] = row.try_get_unchecked(7).map_err(store_error)?;
        let checksum = row::checksum(row, "previous_checksum").map_err(store_error)?;
        let decoded = self
            .decoder()
            .decode(record.key.clone(), revision, value, checksum)
            .await
            .map_err(decode_error)?;
        let unread = || Value::unreadable(record.value.uid());
        Ok(decoded.unwrap_or_else(|_| Record { key: record.key.clone(), revision, value: unread() }))
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
        Box::pin(self.past_events(selection, after, until, limit, max_bytes))
    }
}
