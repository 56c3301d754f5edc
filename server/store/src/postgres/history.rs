//! Reads past events for resuming watches, in bounded pages with limited concurrency.

use std::sync::Arc;

use futures::TryStreamExt;
use futures::future::BoxFuture;
use sqlx::AssertSqlSafe;

use super::failure::store_error;
use super::fatal::WriterFailure;
use super::follow::event;
use super::pool::PooledConnection;
use super::reader::Reader;
use super::row;
use crate::error::StoreError;
use crate::subscription::history::{History, HistoryPage, PageExtent};
use crate::subscription::selection::Selection;

/// Rows of some resources, in one namespace or all, in a range of revisions.
struct RowRange {
    resources: Vec<String>,
    namespace: Option<String>,
    after: i64,
}

impl RowRange {
    /// Returns the query. Its text differs between one namespace and all: see `list::states`.
    fn select(&self, columns: &str, limit: &str) -> String {
        let namespace = match self.namespace {
            Some(_) => "l.namespace = $4",
            None => "$4::text IS NULL",
        };
        format!(
            "SELECT {columns} FROM log l LEFT JOIN log p ON p.revision = l.previous AND l.previous > 0 \
             WHERE l.revision > $1 AND l.revision <= $2 AND l.resource = ANY($3) AND {namespace} \
             ORDER BY l.revision {limit}"
        )
    }
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
        let resources = self.cache.resources().into_values();
        let resources = resources.filter(|resource| selection.selects_resource(resource));
        let namespace = selection.namespace().map(|namespace| format!("{}/", row::to_column(&namespace)));
        let rows = RowRange { resources: resources.map(|r| r.to_string()).collect(), namespace, after };
        // Limits the number of concurrent reads: callers wait here, and occupy no connection that other reads need.
        let _permit = self.history_permits.acquire().await.map_err(|_| StoreError::Closed)?;
        let mut connection = self.pool.acquire().await.map_err(store_error)?;
        let extent = self.page_extent(&mut connection, &rows, until, limit, max_bytes).await?;
        let mut events = Vec::with_capacity(extent.events);
        if extent.events > 0 {
            let select = rows.select(
                "l.resource, l.namespace, l.name, l.revision, l.value, l.deleted, l.previous, p.value, \
                 l.checksum, p.checksum AS previous_checksum",
                "",
            );
            let select = sqlx::query(AssertSqlSafe(select)).bind(after).bind(extent.until);
            let mut found = select.bind(rows.resources).bind(rows.namespace).fetch(&mut *connection);
            while let Some(row) = self.pool.with_timeout(found.try_next()).await.map_err(store_error)? {
                let event = event(&self.decoder(), &row, 0, 7).await.map_err(watch_error)?;
                if let Some(object) = &event.unreadable {
                    return Err(StoreError::corrupt(object));
                }
                events.push(Arc::new(event));
            }
        }
        self.finish_full_read(connection, after).await?;
        Ok(HistoryPage { events, has_more: extent.has_more })
    }

    /// Returns the extent of at most `limit` events with at most `max_bytes`, but at least one, from the lengths of their values.
    async fn page_extent(
        &self,
        connection: &mut PooledConnection<'_>,
        rows: &RowRange,
        until: i64,
        limit: usize,
        max_bytes: usize,
    ) -> Result<PageExtent, StoreError> {
        let select = rows.select(
            "l.revision, (octet_length(l.value) + coalesce(octet_length(p.value), 0))::bigint",
            "LIMIT $5",
        );
        let select = sqlx::query_as(AssertSqlSafe(select)).bind(rows.after).bind(until);
        let select = select.bind(&rows.resources).bind(&rows.namespace);
        let select = select.bind(i64::try_from(limit + 1).unwrap_or(i64::MAX)).fetch_all(&mut **connection);
        let found: Vec<(i64, i64)> = self.pool.with_timeout(select).await.map_err(store_error)?;
        let mut extent = PageExtent::new(rows.after);
        for (revision, length) in found {
            if !extent.push(revision, length, limit, max_bytes) {
                break;
            }
        }
        Ok(extent)
    }
}

/// Converts the failure of a row that a watch requires.
fn watch_error(failure: WriterFailure) -> StoreError {
    match failure {
        WriterFailure::Database(error) => store_error(error),
        WriterFailure::Sealed { key, reason } => StoreError::Sealed { key, reason },
        WriterFailure::Standby | WriterFailure::Fatal(_) => StoreError::Closed,
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
