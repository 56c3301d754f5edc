//! Follows the log: applies commits of other processes, from the revision of this process to the head of the database.

use std::sync::Arc;
use std::time::Instant;

use futures::TryStreamExt;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres, Row};

use super::fatal::{Failure, Fatal};
use super::heal;
use super::open::{self, Meta};
use super::row;
use super::session::{BEGIN, in_time, run};
use super::writer::Writer;
use crate::decode::{DecodeError, Decoder};
use crate::event::{Event, EventType};
use crate::record::{Record, Value};
use crate::subscription::selection::Batch;
use crate::txn::Txn;
use crate::unreadable::Unreadable;

/// Number of rows in a page: more than one group has, so that each page contains at least one complete group.
const PART: i64 = 4 * Txn::MAX_OPERATIONS as i64;

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

/// Rows that follow the applied ones, each with the row that it supersedes.
macro_rules! following {
    () => {
        " FROM log l LEFT JOIN log p ON p.revision = l.previous AND l.previous > 0 \
         WHERE l.revision > $1 AND l.revision <= $2 ORDER BY l.revision"
    };
}

/// Event of a row, with its commit ID.
struct Logged {
    event: Arc<Event>,
    commit_id: i64,
}

impl Writer {
    /// Applies all commits in the database, in pages with limits for time and bytes.
    pub(super) async fn follow_by(&mut self, connection: &mut PgConnection) -> Result<(), Failure> {
        let (pooled, patience) = (self.settings.transaction_pooler, self.settings.patience());
        if pooled {
            in_time(patience, run(connection, BEGIN)).await?;
        }
        let meta = in_time(patience, open::meta(connection)).await?;
        self.catch_up(connection, &meta).await?;
        if pooled {
            in_time(patience, run(connection, self.settings.end())).await?;
        }
        Ok(())
    }

    /// Applies all commits up to the revision of `meta`, which is locked, with one query. Returns false and applies none if
    /// they exceed the limits for a locked row.
    pub(super) async fn catch_up_if_little(
        &mut self,
        connection: &mut PgConnection,
        meta: &Meta,
    ) -> Result<bool, Failure> {
        const SELECT: &str = concat!(
            "SELECT * FROM (SELECT ",
            columns!(),
            ", sum(",
            bytes!(),
            ") OVER (ORDER BY l.revision) AS total",
            following!(),
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
    ) -> Result<(), Failure> {
        self.check_identity(meta)?;
        if meta.revision != self.revision {
            self.check_tail(connection, meta).await?;
        }
        while self.revision < meta.revision {
            let rows = self.read_part(connection, meta.revision).await?;
            if rows.is_empty() {
                let now = in_time(self.settings.patience(), open::meta(connection)).await?;
                self.check_identity(&now)?;
                self.check_swept(now.swept)?;
                (self.revision, self.mark) = (meta.revision, meta.mark);
                self.publisher.advance(meta.revision);
            }
            self.apply(rows);
        }
        // The published revision is no longer before the compaction point.
        self.publisher.hub.set_compacted(meta.compacted);
        Ok(())
    }

    /// Publishes complete commits.
    fn apply(&mut self, rows: Vec<Logged>) {
        let Some((revision, commit_id)) = rows.last().map(|row| (row.event.revision(), row.commit_id)) else {
            return;
        };
        let events: Batch = rows.into_iter().map(|row| row.event).collect();
        let mut unreadable = events.iter().filter_map(|event| event.unreadable.as_deref());
        if unreadable.any(Unreadable::is_sealed) {
            self.heals_at.get_or_insert_with(|| Instant::now() + heal::RETRY);
        }
        (self.revision, self.mark, self.tail) = (revision, commit_id, Some((revision, commit_id)));
        self.publisher.show(&events, revision);
        self.publisher.dispatch(&events, revision);
    }

    /// Checks that only states which this process has applied were swept.
    fn check_swept(&self, swept: i64) -> Result<(), Failure> {
        if swept > self.revision { Err(Failure::Fatal(Fatal::Behind)) } else { Ok(()) }
    }

    fn check_identity(&self, meta: &Meta) -> Result<(), Failure> {
        let known = &self.identity;
        match &meta.identity {
            found if found.store_id != known.store_id => Err(Failure::Fatal(Fatal::Replaced)),
            found if found.epoch != known.epoch => Err(Failure::Fatal(Fatal::NewEpoch)),
            _ if meta.revision < self.revision => Err(Failure::Fatal(Fatal::Lost)),
            // Another process has written this revision.
            _ if meta.revision == self.revision && meta.mark != self.mark => Err(Failure::Fatal(Fatal::Lost)),
            _ => Ok(()),
        }
    }

    /// Returns the next complete commits up to a revision.
    async fn read_part(&mut self, connection: &mut PgConnection, until: i64) -> Result<Vec<Logged>, Failure> {
        const SELECT: &str = concat!("SELECT ", columns!(), following!());
        let Some(until) = self.extent(connection, until).await? else { return Ok(Vec::new()) };
        self.read(connection, sqlx::query(SELECT).bind(self.revision).bind(until)).await
    }

    /// Returns the rows of a query for `columns!`.
    async fn read(
        &self,
        connection: &mut PgConnection,
        select: Query<'static, Postgres, PgArguments>,
    ) -> Result<Vec<Logged>, Failure> {
        let patience = self.settings.patience();
        let mut found = select.fetch(connection);
        let mut rows: Vec<Logged> = Vec::new();
        while let Some(row) = in_time(patience, found.try_next()).await? {
            // Read in the same snapshot as the row.
            self.check_swept(row.try_get(10)?)?;
            rows.push(self.event(&row).await?);
        }
        Ok(rows)
    }

    /// Returns the end of the next page: a commit boundary, if possible within the size limit. `None` if there are no more rows.
    async fn extent(&self, connection: &mut PgConnection, until: i64) -> Result<Option<i64>, Failure> {
        const SELECT: &str = concat!("SELECT l.revision, l.commit_id, ", bytes!(), following!(), " LIMIT $3");
        let select = sqlx::query_as(SELECT).bind(self.revision).bind(until).bind(PART);
        let rows: Vec<(i64, i64, i64)> =
            in_time(self.settings.patience(), select.fetch_all(connection)).await?;
        let is_cut = rows.len() as i64 == PART;
        let (mut end, mut bytes) = (None, 0);
        for (at, (revision, commit_id, length)) in rows.iter().enumerate() {
            bytes += usize::try_from(*length).unwrap_or_default();
            if end.is_some() && bytes > self.settings.follow_bytes {
                return Ok(end);
            }
            // The last commit of a full page may continue in the next one.
            let ends = rows.get(at + 1).map_or(!is_cut, |(_, next, _)| next != commit_id);
            if ends {
                end = Some(*revision);
            }
        }
        Ok(end.or(rows.last().map(|(revision, ..)| *revision)))
    }

    async fn event(&self, row: &PgRow) -> Result<Logged, Failure> {
        // An unavailable key service only blocks values that need it.
        let decoder = Decoder { skips_unopened: true, ..self.reader.decoder() };
        let commit_id = row.try_get(7).map_err(Failure::Database)?;
        let mut event = event(&decoder, row, 0, 9).await?;
        event.is_held = self.reader.cache.will_hold(event.record.key.resource(), event.event_type);
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
            return Ok(Logged { event: Arc::new(event), commit_id });
        }
        Ok(Logged { event: Arc::new(event), commit_id })
    }
}

/// Decodes an event, possibly unreadable, from the columns resource, namespace, name, revision, value, deleted, previous. The
/// superseded value is in the column `previous_value`; checksums are in `checksum` and `previous_checksum`.
pub(super) async fn event(
    decoder: &Decoder<'_>,
    row: &PgRow,
    at: usize,
    previous_value: usize,
) -> Result<Event, Failure> {
    let resource = row::resource(row.try_get(at).map_err(Failure::Database)?);
    let (mut record, mut unreadable) = match decoder.pg_state(&resource, row, at + 1).await {
        Ok(Ok(record)) => (record, None),
        Ok(Err(object)) => ((*object.record).clone(), Some(Arc::new(object))),
        Err(DecodeError::Database(error)) => return Err(Failure::Database(error)),
        Err(DecodeError::Sealed { key, reason }) => return Err(Failure::Sealed { key, reason }),
    };
    let deleted: bool = row.try_get(at + 5).map_err(Failure::Database)?;
    let revision: i64 = row.try_get(at + 6).map_err(Failure::Database)?;
    let value: Option<&[u8]> = row.try_get(previous_value).map_err(Failure::Database)?;
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
    Ok(Event { event_type, record: Arc::new(record), previous, unreadable, is_held: false })
}

/// Returns the state before a record, which may be unreadable.
async fn previous(
    decoder: &Decoder<'_>,
    record: &Record,
    revision: i64,
    value: &[u8],
    row: &PgRow,
) -> Result<Record, Failure> {
    let key = record.key.clone();
    let checksum = row.try_get("previous_checksum").map_err(Failure::Database)?;
    match decoder.value(key.clone(), revision, value, checksum).await {
        Ok(Ok(previous)) => Ok(previous),
        Ok(Err(_)) => Ok(Record { key, revision, value: Value::unreadable(record.value.uid()) }),
        Err(DecodeError::Database(error)) => Err(Failure::Database(error)),
        Err(DecodeError::Sealed { key, reason }) => Err(Failure::Sealed { key, reason }),
    }
}
