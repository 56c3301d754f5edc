//! Reads past states from the log and the archive.
//!
//! A state is either in the log or in the archive and moves in one transaction, so a query over both finds each state once.

use std::sync::Arc;

use futures::TryStreamExt;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row};

use super::clock;
use super::failure::store_error;
use super::pool::PooledConnection;
use super::reader::{Reader, decode_error};
use super::row;
use crate::archive::{PastQuery, PastState, PastStates};
use crate::cache::Slot;
use crate::error::StoreError;
use crate::event::EventType;
use crate::exact_read::{KeyRange, MAX_PAST_BYTES};
use crate::store::{ListAt, Page};

/// States of an object (`$1`, `$2`, `$3`) before a revision (`$4`), limited to `$5`, with the time of each write by the clock
/// of this process (`$6`): that of the first mark at or after it, or of the last mark.
const PAST: &str = concat!(
    "SELECT $2, $3, k.revision, coalesce(l.value, a.value), k.deleted, k.previous, \
    coalesce((SELECT m.at FROM mark m WHERE m.revision >= k.revision ORDER BY m.revision LIMIT 1), \
    (SELECT m.at FROM mark m ORDER BY m.revision DESC LIMIT 1)) + ",
    clock::clock_difference!("$6"),
    ", CASE WHEN l.revision IS NULL THEN a.checksum ELSE l.checksum END AS checksum FROM (\
    SELECT revision, deleted, previous FROM log \
    WHERE resource = $1 AND namespace = $2 AND name = $3 AND revision < $4 UNION \
    SELECT revision, deleted, previous FROM archive \
    WHERE resource = $1 AND namespace = $2 AND name = $3 AND revision < $4 ORDER BY revision DESC LIMIT $5) k \
    LEFT JOIN log l ON l.revision = k.revision LEFT JOIN archive a ON a.revision = k.revision \
    ORDER BY k.revision DESC"
);

/// Returns a query for the state of each key of a resource (`$1`) that existed at a revision (`$2`), after a key (`$3`, `$4`),
/// in key order, limited to `$5`.
fn past_states(range: &KeyRange) -> String {
    let keys = match range.namespace {
        Some(_) => "(namespace, name) > ($3, $4) AND namespace <= $3",
        None => "(namespace, name) > ($3, $4)",
    };
    format!(
        "SELECT k.namespace, k.name, k.revision, coalesce(l.value, a.value), \
         CASE WHEN l.revision IS NULL THEN a.checksum ELSE l.checksum END AS checksum FROM (\
         SELECT namespace, name, max(revision) AS revision FROM (\
         SELECT namespace, name, revision FROM archive \
         WHERE resource = $1 AND revision <= $2 AND until > $2 AND NOT deleted AND {keys} UNION ALL \
         SELECT namespace, name, revision FROM (SELECT DISTINCT ON (namespace, name) namespace, name, revision, deleted FROM log \
         WHERE resource = $1 AND revision <= $2 AND {keys} ORDER BY namespace, name, revision DESC) c WHERE NOT deleted) s \
         GROUP BY namespace, name ORDER BY namespace, name LIMIT $5) k \
         LEFT JOIN log l ON l.revision = k.revision LEFT JOIN archive a ON a.revision = k.revision \
         ORDER BY k.namespace, k.name"
    )
}

/// Unused range of revisions that contains a revision (`$1`).
const REVISION_GAP: &str = "SELECT after, until FROM lost WHERE after < $1 AND until > $1 LIMIT 1";

impl Reader {
    pub(super) async fn list_past(&self, query: ListAt) -> Result<Page, StoreError> {
        match self.list_at(query.clone()).await {
            Err(StoreError::Compacted { .. }) => {}
            listed => return listed,
        }
        let slot = self.cache.slot(&query.scope.resource);
        let mut connection = self.pool.acquire().await.map_err(store_error)?;
        self.check_gap(&mut connection, query.revision).await?;
        let page = self.list_from_archive(&mut connection, &slot, &query).await?;
        // A deletion of states before the read has been recorded by now.
        let oldest = self.complete_from(connection, &slot).await?;
        if query.revision < oldest { Err(StoreError::Compacted { oldest }) } else { Ok(page) }
    }

    async fn list_from_archive(
        &self,
        connection: &mut PooledConnection<'_>,
        slot: &Slot,
        query: &ListAt,
    ) -> Result<Page, StoreError> {
        let mut page = Page::default();
        let Some(range) = KeyRange::new(query, row::to_column) else { return Ok(page) };
        let limit = query.limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let select = AssertSqlSafe(past_states(&range));
        let select = sqlx::query(select).bind(slot.resource.to_string()).bind(query.revision);
        let mut rows = select.bind(range.after.0).bind(range.after.1).bind(limit).fetch(&mut **connection);
        let mut rows_read = 0;
        while let Some(row) = self.pool.with_timeout(rows.try_next()).await.map_err(store_error)? {
            rows_read += 1;
            match self.decoder().decode_pg_row(&slot.resource, &row, 0).await.map_err(decode_error)? {
                Ok(record) => page.records.push(Arc::new(record)),
                Err(object) => page.unreadable.push(object),
            }
        }
        page.remaining = u64::from(query.limit == Some(rows_read));
        Ok(page)
    }

    /// Rejects a revision between a backup and the epoch restored from it: clients may have seen it with another state.
    async fn check_gap(
        &self,
        connection: &mut PooledConnection<'_>,
        revision: i64,
    ) -> Result<(), StoreError> {
        let gap = sqlx::query_as(REVISION_GAP).bind(revision).fetch_optional(&mut **connection);
        let gap: Option<(i64, i64)> = self.pool.with_timeout(gap).await.map_err(store_error)?;
        gap.map_or(Ok(()), |(after, until)| Err(StoreError::Lost { revision, after, until }))
    }

    /// Returns the revision from which all states of a resource are stored, and releases the connection.
    async fn complete_from(
        &self,
        mut connection: PooledConnection<'_>,
        slot: &Slot,
    ) -> Result<i64, StoreError> {
        const SINCE: &str = "SELECT coalesce((SELECT since FROM archived WHERE resource = $1), compacted) \
            FROM meta WHERE id = 1";
        let since = sqlx::query_scalar(SINCE).bind(slot.resource.to_string()).fetch_one(&mut *connection);
        let since = self.pool.with_timeout(since).await.map_err(store_error)?;
        connection.release().await.map_err(store_error)?;
        Ok(since)
    }

    pub(super) async fn past_states(&self, query: PastQuery) -> Result<PastStates, StoreError> {
        self.latest_revision.wait_linearizable().await?;
        let slot = self.cache.slot(query.key.resource());
        let (namespace, name) = row::columns(query.key.path());
        let limit = i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1);
        let mut connection = self.pool.acquire().await.map_err(store_error)?;
        if let Some(before) = query.before {
            self.check_gap(&mut connection, before.saturating_sub(1)).await?;
        }
        let select = sqlx::query(PAST).bind(slot.resource.to_string()).bind(namespace).bind(name);
        let select = select.bind(query.before.unwrap_or(i64::MAX)).bind(limit).bind(clock::process_clock());
        let mut rows = select.fetch(&mut *connection);
        let (mut result, mut bytes) = (PastStates::default(), 0);
        while let Some(row) = self.pool.with_timeout(rows.try_next()).await.map_err(store_error)? {
            if result.states.len() == query.limit || bytes > MAX_PAST_BYTES {
                result.has_more = true;
                break;
            }
            bytes += row.try_get::<&[u8], _>(3).map_err(store_error)?.len();
            result.states.push(self.past_state(&slot, &row).await?);
        }
        drop(rows);
        result.complete_from = self.complete_from(connection, &slot).await?;
        Ok(result)
    }

    async fn past_state(&self, slot: &Slot, row: &PgRow) -> Result<PastState, StoreError> {
        let state =
            self.decoder().decode_pg_row(&slot.resource, row, 0).await.map_err(decode_error)?.map(Arc::new);
        let (deleted, previous): (bool, i64) =
            (row.try_get(4).map_err(store_error)?, row.try_get(5).map_err(store_error)?);
        let written_at = row.try_get(6).map_err(store_error)?;
        Ok(PastState { change: EventType::of(deleted, previous > 0), state, written_at })
    }
}
