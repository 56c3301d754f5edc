//! Reads past events for watches that resume: bounded parts, of which only few are read at a time.

use std::sync::Arc;

use futures::TryStreamExt;
use futures::future::BoxFuture;

use super::failure::failed;
use super::fatal::Failure;
use super::follow::event;
use super::read::Reader;
use super::row;
use crate::error::StoreError;
use crate::subscription::history::{History, HistoryPage};
use crate::subscription::selection::Selection;

/// How far the next part of history goes.
struct Extent {
    until: i64,
    events: usize,
    more: bool,
}

/// Which rows: those of some resources, of one namespace or all, in a range of revisions.
struct Rows {
    resources: Vec<String>,
    namespace: Option<String>,
    after: i64,
}

impl Reader {
    async fn past(
        &self,
        selection: Selection,
        after: i64,
        until: i64,
        limit: usize,
        max_bytes: usize,
    ) -> Result<HistoryPage, StoreError> {
        const SELECT: &str = "SELECT l.resource, l.namespace, l.name, l.revision, l.value, l.deleted, l.previous, p.value \
            FROM log l LEFT JOIN log p ON p.revision = l.previous AND l.previous > 0 \
            WHERE l.revision > $1 AND l.revision <= $2 AND l.resource = ANY($3) \
            AND ($4::text IS NULL OR l.namespace = $4) ORDER BY l.revision";
        let resources = self.cache.resources().into_values();
        let resources = resources.filter(|resource| selection.takes_resource(resource));
        let namespace = selection.namespace().map(|namespace| format!("{}/", row::to_column(&namespace)));
        let rows = Rows { resources: resources.map(|r| r.to_string()).collect(), namespace, after };
        // At most so many at a time: their callers wait here, and keep no connection from other reads.
        let _permit = self.resumes.acquire().await.map_err(|_| StoreError::Closed)?;
        let extent = self.extent(&rows, until, limit, max_bytes).await?;
        let mut events = Vec::with_capacity(extent.events);
        if extent.events > 0 {
            let select = sqlx::query(SELECT).bind(after).bind(extent.until).bind(rows.resources);
            let mut found = select.bind(rows.namespace).fetch(&self.pool);
            while let Some(row) = found.try_next().await.map_err(failed)? {
                events.push(Arc::new(event(&self.decoder(), &row, 0, 7).await.map_err(unread)?));
            }
        }
        self.whole(after).await?;
        Ok(HistoryPage { events, more: extent.more })
    }

    /// How far `limit` events that take `max_bytes` go, and at least one, by the lengths of their values.
    async fn extent(
        &self,
        rows: &Rows,
        until: i64,
        limit: usize,
        max_bytes: usize,
    ) -> Result<Extent, StoreError> {
        const SELECT: &str = "SELECT l.revision, (octet_length(l.value) + coalesce(octet_length(p.value), 0))::bigint \
            FROM log l LEFT JOIN log p ON p.revision = l.previous AND l.previous > 0 \
            WHERE l.revision > $1 AND l.revision <= $2 AND l.resource = ANY($3) \
            AND ($4::text IS NULL OR l.namespace = $4) ORDER BY l.revision LIMIT $5";
        let select = sqlx::query_as(SELECT).bind(rows.after).bind(until).bind(&rows.resources);
        let select = select.bind(&rows.namespace).bind(i64::try_from(limit + 1).unwrap_or(i64::MAX));
        let found: Vec<(i64, i64)> = select.fetch_all(&self.pool).await.map_err(failed)?;
        let (mut extent, mut bytes) = (Extent { until: rows.after, events: 0, more: false }, 0);
        for (revision, length) in found {
            bytes += usize::try_from(length).unwrap_or_default();
            if extent.events == limit || (extent.events > 0 && bytes > max_bytes) {
                extent.more = true;
                break;
            }
            extent.events += 1;
            extent.until = revision;
        }
        Ok(extent)
    }
}

/// What a row is to a watch that cannot go on without it.
fn unread(failure: Failure) -> StoreError {
    match failure {
        Failure::Database(error) => failed(error),
        Failure::Sealed { key, reason } => StoreError::Sealed { key, reason },
        Failure::Unreadable(object) => StoreError::corrupt(&object),
        Failure::Fatal(_) => StoreError::Closed,
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
