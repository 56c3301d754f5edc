//! Lists a resource at an exact revision, page by page.

use std::sync::Arc;

use futures::TryStreamExt;
use sqlx::{AssertSqlSafe, Row};

use super::failure::store_error;
use super::pool::PooledConnection;
use super::reader::{Reader, decode_error};
use super::row;
use crate::cache::Slot;
use crate::error::StoreError;
use crate::exact_read::{self, KeyRange};
use crate::store::{ListAt, Page};

/// Maximum number of keys that one query examines when deleted keys reduce the result.
const MAX_KEYS: usize = 4_096;

/// Result of a query for a part of a page.
enum PartEnd {
    /// No more keys follow.
    Last,
    /// The page is full, and more keys follow.
    PageFull,
    /// All requested keys were examined; the page has room for more.
    Continue,
}

/// Returns a query for the last states, including deletions, up to a revision (`$2`) of the keys of a resource (`$1`) after a
/// key (`$3`, `$4`), in key order: of the namespace `$3` or of all. The two cases have separate texts: a common plan would read
/// all namespaces for one.
///
/// A limit must be part of this query, not of an outer query that filters deleted states: PostgreSQL's planner would expect to
/// read so many states that it sorts all of them instead of following the index.
fn states(range: &KeyRange) -> String {
    let keys = match range.namespace {
        // Not `namespace = $3 AND name > $4`: the planner would not recognize that the index has the order of keys.
        Some(_) => "(namespace, name) > ($3, $4) AND namespace <= $3",
        None => "(namespace, name) > ($3, $4)",
    };
    format!(
        "SELECT DISTINCT ON (namespace, name) namespace, name, revision, deleted FROM log \
         WHERE resource = $1 AND revision <= $2 AND {keys} ORDER BY namespace, name, revision DESC"
    )
}

impl Reader {
    /// Answers an exact read: from memory if nothing has changed since, otherwise from the log.
    pub(super) async fn list_at(&self, query: ListAt) -> Result<Page, StoreError> {
        let slot = self.cache.slot(&query.scope.resource);
        if let Some(page) = exact_read::page_from_memory(&self.hub, &slot, &query)? {
            return Ok(page);
        }
        let Some(range) = KeyRange::new(&query, row::to_column) else { return Ok(Page::default()) };
        let mut connection = self.pool.acquire().await.map_err(store_error)?;
        let page = self.list_from_log(&mut connection, &slot, range, &query).await?;
        self.finish_exact_read(connection, query.revision).await?;
        Ok(page)
    }

    async fn list_from_log(
        &self,
        connection: &mut PooledConnection<'_>,
        slot: &Slot,
        mut range: KeyRange,
        query: &ListAt,
    ) -> Result<Page, StoreError> {
        let mut page = Page::default();
        // One more key than requested shows that more follow.
        let mut keys = query.limit.map(|limit| limit.saturating_add(1));
        loop {
            match self.read_part(connection, slot, &mut range, query, keys, &mut page).await? {
                PartEnd::Last => return Ok(page),
                PartEnd::PageFull => break,
                PartEnd::Continue => keys = keys.map(|keys| keys.max((keys * 2).min(MAX_KEYS))),
            }
        }
        if !query.exact_count {
            page.remaining = 1;
            return Ok(page);
        }
        let count = async |_| {
            let select = format!("SELECT count(*) FROM ({}) k WHERE NOT deleted", states(&range));
            let count = sqlx::query_scalar(AssertSqlSafe(select)).bind(slot.resource.to_string());
            let count = count.bind(query.revision).bind(range.after.0).bind(range.after.1);
            self.pool.with_timeout(count.fetch_one(&mut **connection)).await.map_err(store_error)
        };
        let rows_read = page.records.len() + page.unreadable.len();
        page.remaining = exact_read::remaining(&self.cache, slot, query, &page, rows_read, count).await?;
        Ok(page)
    }

    /// Examines this number of keys from the start of a range, and moves the start after keys that were added to the page or
    /// skipped. Unreadable objects do not count against the limit of the page.
    async fn read_part(
        &self,
        connection: &mut PooledConnection<'_>,
        slot: &Slot,
        range: &mut KeyRange,
        query: &ListAt,
        keys: Option<usize>,
        page: &mut Page,
    ) -> Result<PartEnd, StoreError> {
        let select = format!(
            "SELECT k.namespace, k.name, k.revision, l.value, k.deleted, l.checksum FROM ({} LIMIT $5) k \
             LEFT JOIN log l ON l.revision = k.revision AND NOT k.deleted ORDER BY k.namespace, k.name",
            states(range)
        );
        let limit = keys.map(|keys| i64::try_from(keys).unwrap_or(i64::MAX));
        let select = sqlx::query(AssertSqlSafe(select)).bind(slot.resource.to_string()).bind(query.revision);
        let select = select.bind(range.after.0.clone()).bind(range.after.1.clone()).bind(limit);
        let mut rows = select.fetch(&mut **connection);
        let mut looked = 0;
        while let Some(row) = self.pool.with_timeout(rows.try_next()).await.map_err(store_error)? {
            looked += 1;
            let deleted: bool = row.try_get(4).map_err(store_error)?;
            if !deleted && query.limit == Some(page.records.len()) {
                return Ok(PartEnd::PageFull);
            }
            range.after = (row.try_get(0).map_err(store_error)?, row.try_get(1).map_err(store_error)?);
            if deleted {
                continue;
            }
            match self.decoder().decode_pg_row(&slot.resource, &row, 0).await.map_err(decode_error)? {
                Ok(record) => page.records.push(Arc::new(record)),
                Err(object) => page.unreadable.push(object),
            }
        }
        Ok(if keys == Some(looked) { PartEnd::Continue } else { PartEnd::Last })
    }
}
