//! Follows the log: applies commits of other processes, from the revision of this process to the head of the database.

use std::sync::Arc;
use std::time::Instant;

use futures::TryStreamExt;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres, Row};

use super::fatal::{FatalError, WriterFailure};
use super::open::{self, Meta};
use super::row;
use super::session::{BEGIN, run, with_timeout};
use super::unreadable_retry;
use super::writer::Writer;
use crate::decode::{DecodeError, Decoder};
use crate::event::{Event, EventType};
use crate::record::{Record, Value};
use crate::subscription::selection::Batch;
use crate::txn::Txn;
use crate::unreadable::Unreadable;

/// Number of rows in a page: more than one group has, so that each page contains at least one complete group.
const PAGE_ROWS: i64 = 4 * Txn::MAX_OPERATIONS as i64;

/// Maximum bytes and rows that are read while the row is locked for which all writers wait: few enough for the buffers of
/// the connection, so that the database waits in the transaction, where its idle timeout applies, and not for buffer
/// space of a socket.
const LOCKED_BYTES: i64 = 128 << 10;
const LOCKED_ROWS: i64 = 500;

/// Size of a row in memory: its value and the one that it supersedes.
macro_rules! bytes {
    () => {
        "(octet_length(l.value) + coalesce(octet_length(p.value), 0))::bigint"
    };
}

/// Columns of an event.
macro_rules! columns {
    () => {
        "l.resource, l.namespace, l.name, l.revision, l.value, l.deleted, l.previous, l.commit_id, l.uid, p.value AS superseded, \
         (SELECT s.revision FROM swept s WHERE s.id = 1) AS swept, l.checksum, p.checksum AS previous_checksum"
    };
}

/// Rows after the last applied one, each with the row that it supersedes.
macro_rules! unapplied_rows {
    () => {
        " FROM log l LEFT JOIN log p ON p.revision = l.previous AND l.previous > 0 \
         WHERE l.revision > $1 AND l.revision <= $2 ORDER BY l.revision"
    };
}

/// Event of a row, with its commit ID.
struct LogRow {
    event: Arc<Event>,
    commit_id: i64,
}

impl Writer {
    /// Applies all commits in the database, in pages with limits for time and bytes.
    pub(super) async fn follow_log(&mut self, connection: &mut PgConnection) -> Result<(), WriterFailure> {
        let (uses_pooler, step_timeout) = (self.settings.transaction_pooler, self.settings.step_timeout());
        if uses_pooler {
            with_timeout(step_timeout, run(connection, BEGIN)).await?;
        }
        let meta = with_timeout(step_timeout, open::meta(connection)).await?;
        self.catch_up(connection, &meta).await?;
        if uses_pooler {
            with_timeout(step_timeout, run(connection, self.settings.end_sql())).await?;
        }
        Ok(())
    }

    /// Applies all commits up to the revision of `meta`, which is locked, with one query. Returns false and applies none if
    /// they exceed the limits for a locked row.
    pub(super) async fn catch_up_if_short(
        &mut self,
        connection: &mut PgConnection,
        meta: &Meta,
    ) -> Result<bool, WriterFailure> {
        const SELECT: &str = concat!(
            "SELECT * FROM (SELECT ",
            columns!(),
            ", sum(",
            bytes!(),
            ") OVER (ORDER BY l.revision) AS total",
            unapplied_rows!(),
            " LIMIT $3) part WHERE total <= $4 ORDER BY revision"
        );
        self.check_identity(meta)?;
        if meta.revision != self.revision {
            self.check_tail(connection, meta).await?;
            let select = sqlx::query(SELECT).bind(self.revision).bind(meta.revision);
            let rows = self.read(connection, select.bind(LOCKED_ROWS).bind(LOCKED_BYTES)).await?;
            if rows.last().is_none_or(|last| last.event.revision() < meta.revision) {
                return Ok(false);
            }
            self.apply(rows);
        }
        self.publisher.hub.set_compacted(meta.compacted);
        Ok(true)
    }

    /// Applies all commits up to the revision of `meta`, which was read on this connection.
    pub(super) async fn catch_up(
        &mut self,
        connection: &mut PgConnection,
        meta: &Meta,
    ) -> Result<(), WriterFailure> {
        self.check_identity(meta)?;
        if meta.revision != self.revision {
            self.check_tail(connection, meta).await?;
        }
        while self.revision < meta.revision {
            let rows = self.read_page(connection, meta.revision).await?;
            if rows.is_empty() {
                let now = with_timeout(self.settings.step_timeout(), open::meta(connection)).await?;
                self.check_identity(&now)?;
                self.check_gc_revision(now.gc_revision)?;
                (self.revision, self.head_commit_id) = (meta.revision, meta.head_commit_id);
                self.publisher.advance(meta.revision);
            }
            self.apply(rows);
        }
        // The published revision is no longer before the compaction point.
        self.publisher.hub.set_compacted(meta.compacted);
        Ok(())
    }

    /// Publishes complete commits.
    fn apply(&mut self, rows: Vec<LogRow>) {
        let Some((revision, commit_id)) = rows.last().map(|row| (row.event.revision(), row.commit_id)) else {
            return;
        };
        let events: Batch = rows.into_iter().map(|row| row.event).collect();
        let mut unreadable = events.iter().filter_map(|event| event.unreadable.as_deref());
        if unreadable.any(Unreadable::is_sealed) {
            self.retry_unreadable_at.get_or_insert_with(|| Instant::now() + unreadable_retry::RETRY_DELAY);
        }
        (self.revision, self.head_commit_id, self.tail) = (revision, commit_id, Some((revision, commit_id)));
        self.publisher.publish(&events, revision);
        self.publisher.fan_out(&events, revision);
    }

    /// Checks that only states which this process has applied were swept.
    fn check_gc_revision(&self, gc_revision: i64) -> Result<(), WriterFailure> {
        if gc_revision > self.revision {
            Err(WriterFailure::Fatal(FatalError::CommitsMissed))
        } else {
            Ok(())
        }
    }

    fn check_identity(&self, meta: &Meta) -> Result<(), WriterFailure> {
        let expected = &self.identity;
        match &meta.identity {
            found if found.store_id != expected.store_id => Err(WriterFailure::Fatal(FatalError::Replaced)),
            found if found.epoch != expected.epoch => Err(WriterFailure::Fatal(FatalError::NewEpoch)),
            _ if meta.revision < self.revision => Err(WriterFailure::Fatal(FatalError::CommitsLost)),
            // Another process has written this revision.
            _ if meta.revision == self.revision && meta.head_commit_id != self.head_commit_id => {
                Err(WriterFailure::Fatal(FatalError::CommitsLost))
            }
            _ => Ok(()),
        }
    }

    /// Returns the next complete commits up to a revision.
    async fn read_page(
        &mut self,
        connection: &mut PgConnection,
        until: i64,
    ) -> Result<Vec<LogRow>, WriterFailure> {
        const SELECT: &str = concat!("SELECT ", columns!(), unapplied_rows!());
        let Some(until) = self.page_end(connection, until).await? else { return Ok(Vec::new()) };
        self.read(connection, sqlx::query(SELECT).bind(self.revision).bind(until)).await
    }

    /// Returns the rows of a query for `columns!`.
    async fn read(
        &self,
        connection: &mut PgConnection,
        select: Query<'static, Postgres, PgArguments>,
    ) -> Result<Vec<LogRow>, WriterFailure> {
        let step_timeout = self.settings.step_timeout();
        let mut found = select.fetch(connection);
        let mut rows: Vec<LogRow> = Vec::new();
        while let Some(row) = with_timeout(step_timeout, found.try_next()).await? {
            // Read in the same snapshot as the row.
            self.check_gc_revision(row.try_get(10)?)?;
            rows.push(self.event(&row).await?);
        }
        Ok(rows)
    }

    /// Returns the end of the next page: a commit boundary, if possible within the size limit. `None` if there are no more rows.
    async fn page_end(
        &self,
        connection: &mut PgConnection,
        until: i64,
    ) -> Result<Option<i64>, WriterFailure> {
        const SELECT: &str =
            concat!("SELECT l.revision, l.commit_id, ", bytes!(), unapplied_rows!(), " LIMIT $3");
        let select = sqlx::query_as(SELECT).bind(self.revision).bind(until).bind(PAGE_ROWS);
        let rows: Vec<(i64, i64, i64)> =
            with_timeout(self.settings.step_timeout(), select.fetch_all(connection)).await?;
        let is_cut = rows.len() as i64 == PAGE_ROWS;
        let (mut end, mut bytes) = (None, 0);
        for (index, (revision, commit_id, length)) in rows.iter().enumerate() {
            bytes += usize::try_from(*length).unwrap_or_default();
            if end.is_some() && bytes > self.settings.follow_bytes {
                return Ok(end);
            }
            // The last commit of a full page may continue in the next one.
            let is_commit_end = rows.get(index + 1).map_or(!is_cut, |(_, next, _)| next != commit_id);
            if is_commit_end {
                end = Some(*revision);
            }
        }
        Ok(end.or(rows.last().map(|(revision, ..)| *revision)))
    }

    async fn event(&self, row: &PgRow) -> Result<LogRow, WriterFailure> {
        // An unavailable key service only blocks values that need it.
        let decoder = Decoder { skips_unopened: true, ..self.reader.decoder() };
        let commit_id = row.try_get(7).map_err(WriterFailure::Database)?;
        let mut event = event(&decoder, row, 0, 9).await?;
        event.is_record_cached = self.reader.cache.will_cache(event.record.key.resource(), event.event_type);
        if let Some(object) = &event.unreadable {
            tracing::error!(
                object = %object.key(),
                revision = object.revision(),
                error = object.reason(),
                "cannot read an object written by another process, omitted from lists"
            );
            let uid: &str = row.try_get(8)?;
            let object = Arc::new((**object).clone().with_uid(&row::from_column(uid)));
            let event = Event { record: object.record.clone(), unreadable: Some(object), ..event };
            return Ok(LogRow { event: Arc::new(event), commit_id });
        }
        Ok(LogRow { event: Arc::new(event), commit_id })
    }
}

/// Decodes an event, possibly unreadable, from the columns resource, namespace, name, revision, value, deleted, previous. The
/// superseded value is in the column `previous_value`; checksums are in `checksum` and `previous_checksum`.
pub(super) async fn event(
    decoder: &Decoder<'_>,
    row: &PgRow,
    first_column: usize,
    previous_value: usize,
) -> Result<Event, WriterFailure> {
    let resource = row::resource(row.try_get(first_column).map_err(WriterFailure::Database)?);
    let (mut record, mut unreadable) = match decoder.decode_pg_row(&resource, row, first_column + 1).await {
        Ok(Ok(record)) => (record, None),
        Ok(Err(object)) => ((*object.record).clone(), Some(Arc::new(object))),
        Err(DecodeError::Database(error)) => return Err(WriterFailure::Database(error)),
        Err(DecodeError::Sealed { key, reason }) => return Err(WriterFailure::Sealed { key, reason }),
    };
    let deleted: bool = row.try_get(first_column + 5).map_err(WriterFailure::Database)?;
    let revision: i64 = row.try_get(first_column + 6).map_err(WriterFailure::Database)?;
    let value: Option<&[u8]> = row.try_get(previous_value).map_err(WriterFailure::Database)?;
    let previous = match value.filter(|_| revision > 0) {
        None => None,
        Some(value) => Some(Arc::new(previous(decoder, &record, revision, value, row).await?)),
    };
    let event_type = EventType::of(deleted, previous.is_some());
    // For a deletion, the previous state has the same content.
    if let (EventType::Deleted, Some(previous)) = (event_type, &previous)
        && unreadable.is_some()
        && !previous.value.is_unreadable()
    {
        (record.value, unreadable) = (previous.value.clone(), None);
    }
    Ok(Event { event_type, record: Arc::new(record), previous, unreadable, is_record_cached: false })
}

/// Returns the state before a record, which may be unreadable.
async fn previous(
    decoder: &Decoder<'_>,
    record: &Record,
    revision: i64,
    value: &[u8],
    row: &PgRow,
) -> Result<Record, WriterFailure> {
    let key = record.key.clone();
    let checksum = row.try_get("previous_checksum").map_err(WriterFailure::Database)?;
    match decoder.decode(key.clone(), revision, value, checksum).await {
        Ok(Ok(previous)) => Ok(previous),
        Ok(Err(_)) => Ok(Record { key, revision, value: Value::unreadable(record.value.uid()) }),
        Err(DecodeError::Database(error)) => Err(WriterFailure::Database(error)),
        Err(DecodeError::Sealed { key, reason }) => Err(WriterFailure::Sealed { key, reason }),
    }
}
