//! Reads past states from the log and the archive. Uses read connections only.
//!
//! A state is either in the log or in the archive and moves in one transaction, so a query over both finds each state once.

use std::borrow::Cow;
use std::sync::Arc;

use futures::TryStreamExt;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row};

use super::reader::{Reader, decode_error, store_error};
use crate::archive::{PastQuery, PastState, PastStates};
use crate::cache::Slot;
use crate::error::StoreError;
use crate::event::EventType;
use crate::exact_read::{KeyRange, MAX_PAST_BYTES};
use crate::key::split_path;
use crate::store::{ListAt, Page};

/// States of an object (`?1`, `?2`, `?3`) before a revision (`?4`), limited to `?5`, with the time of each write: that of
/// the first mark at or after it, or of the last mark.
const PAST: &str = "SELECT k.namespace, k.name, k.revision, coalesce(l.value, a.value), k.deleted, k.previous, \
    coalesce((SELECT m.at FROM mark m WHERE m.revision >= k.revision ORDER BY m.revision LIMIT 1), \
    (SELECT m.at FROM mark m ORDER BY m.revision DESC LIMIT 1)), \
    iif(l.revision IS NULL, a.checksum, l.checksum) AS checksum FROM (\
    SELECT namespace, name, revision, deleted, previous FROM log \
    WHERE resource = ?1 AND namespace = ?2 AND name = ?3 AND revision < ?4 UNION \
    SELECT namespace, name, revision, deleted, previous FROM archive \
    WHERE resource = ?1 AND namespace = ?2 AND name = ?3 AND revision < ?4 ORDER BY revision DESC LIMIT ?5) k \
    LEFT JOIN log l ON l.revision = k.revision LEFT JOIN archive a ON a.revision = k.revision \
    ORDER BY k.revision DESC";

impl KeyRange {
    /// Returns a query for the state of each key of a resource (`?1`) that existed at a revision (`?2`), after a key (`?3`,
    /// `?4`), in key order, limited to `?5`.
    fn past_states(&self) -> String {
        let keys = self.keys();
        format!(
            "SELECT k.namespace, k.name, k.revision, coalesce(l.value, a.value), \
             iif(l.revision IS NULL, a.checksum, l.checksum) AS checksum FROM (\
             SELECT namespace, name, max(revision) AS revision FROM (\
             SELECT namespace, name, revision FROM archive \
             WHERE resource = ?1 AND revision <= ?2 AND until > ?2 AND deleted = 0 AND {keys} UNION ALL \
             SELECT namespace, name, revision FROM (SELECT namespace, name, max(revision) AS revision, deleted FROM log \
             WHERE resource = ?1 AND revision <= ?2 AND {keys} GROUP BY namespace, name HAVING deleted = 0)) \
             GROUP BY namespace, name ORDER BY namespace, name LIMIT ?5) k \
             LEFT JOIN log l ON l.revision = k.revision LEFT JOIN archive a ON a.revision = k.revision \
             ORDER BY k.namespace, k.name"
        )
    }
}

/// Unused range of revisions that contains a revision (`?`).
const REVISION_GAP: &str = "SELECT after, until FROM lost WHERE after < ?1 AND until > ?1 LIMIT 1";

impl Reader {
    pub(crate) async fn list_past(&self, query: ListAt) -> Result<Page, StoreError> {
        match self.list_at(query.clone()).await {
            Err(StoreError::Compacted { .. }) => {}
            listed => return listed,
        }
        let slot = self.cache.slot(&query.scope.resource);
        self.check_gap(query.revision).await?;
        let page = self.list_from_archive(&slot, &query).await?;
        // A deletion of states before the read has been recorded by now.
        let oldest = self.complete_from(&slot).await?;
        if query.revision < oldest { Err(StoreError::Compacted { oldest }) } else { Ok(page) }
    }

    async fn list_from_archive(&self, slot: &Slot, query: &ListAt) -> Result<Page, StoreError> {
        let mut page = Page::default();
        let Some(range) = KeyRange::new(query, |text| Cow::Borrowed(text)) else { return Ok(page) };
        let limit = query.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let select = sqlx::query(AssertSqlSafe(range.past_states())).bind(slot.id).bind(query.revision);
        let mut rows = select.bind(range.after.0).bind(range.after.1).bind(limit).fetch(&self.pool);
        let mut rows_read = 0;
        while let Some(row) = rows.try_next().await.map_err(store_error)? {
            rows_read += 1;
            match self.decoder().decode_row(&slot.resource, &row, 0).await.map_err(decode_error)? {
                Ok(record) => page.records.push(Arc::new(record)),
                Err(object) => page.unreadable.push(object),
            }
        }
        page.remaining = u64::from(query.limit == Some(rows_read));
        Ok(page)
    }

    /// Rejects a revision between a backup and the epoch restored from it: clients may have seen it with another state.
    async fn check_gap(&self, revision: i64) -> Result<(), StoreError> {
        let gap: Option<(i64, i64)> = sqlx::query_as(REVISION_GAP)
            .bind(revision)
            .fetch_optional(&self.pool)
            .await
            .map_err(store_error)?;
        gap.map_or(Ok(()), |(after, until)| Err(StoreError::Lost { revision, after, until }))
    }

    /// Returns the revision from which all states of a resource are stored.
    async fn complete_from(&self, slot: &Slot) -> Result<i64, StoreError> {
        let since = sqlx::query_scalar("SELECT since FROM archived WHERE resource = ?").bind(slot.id);
        let since: Option<i64> = since.fetch_optional(&self.pool).await.map_err(store_error)?;
        Ok(since.unwrap_or_else(|| self.hub.compacted()))
    }

    pub(crate) async fn past_states(&self, query: PastQuery) -> Result<PastStates, StoreError> {
        if let Some(before) = query.before {
            self.check_gap(before.saturating_sub(1)).await?;
        }
        let slot = self.cache.slot(query.key.resource());
        let (namespace, name) = split_path(query.key.path());
        let limit = i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1);
        let select = sqlx::query(PAST).bind(slot.id).bind(namespace).bind(name);
        let mut rows = select.bind(query.before.unwrap_or(i64::MAX)).bind(limit).fetch(&self.pool);
        let (mut result, mut bytes) = (PastStates::default(), 0);
        while let Some(row) = rows.try_next().await.map_err(store_error)? {
            if result.states.len() == query.limit || bytes > MAX_PAST_BYTES {
                result.has_more = true;
                break;
            }
            let value: &[u8] = row.try_get_unchecked(3).map_err(store_error)?;
            bytes += value.len();
            result.states.push(self.past_state(&slot, &row).await?);
        }
        drop(rows);
        result.complete_from = self.complete_from(&slot).await?;
        Ok(result)
    }

    async fn past_state(&self, slot: &Slot, row: &SqliteRow) -> Result<PastState, StoreError> {
        let state =
            self.decoder().decode_row(&slot.resource, row, 0).await.map_err(decode_error)?.map(Arc::new);
        let (deleted, previous): (i64, i64) =
            (row.try_get_unchecked(4).map_err(store_error)?, row.try_get_unchecked(5).map_err(store_error)?);
        let written_at = row.try_get(6).map_err(store_error)?;
        Ok(PastState { change: EventType::of(deleted == 1, previous > 0), state, written_at })
    }
}
