//! Takes up what others have written: the log from where this process stands to where the database does.

use std::sync::Arc;

use futures::TryStreamExt;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::fatal::{Failure, Fatal};
use super::open::{self, Meta};
use super::row;
use super::writer::Writer;
use crate::decode::{DecodeError, Decoder};
use crate::event::{Event, EventType};
use crate::record::{Record, Value};
use crate::subscription::selection::Batch;
use crate::txn::Txn;

/// Rows that are read at a time: more than one group has, so that each part holds at least one group whole.
const PART: i64 = 4 * Txn::MAX_OPERATIONS as i64;

/// Bytes of values after which a part ends with a commit.
const PART_BYTES: usize = 64 << 20;

/// A row, with its commit.
struct Logged {
    event: Arc<Event>,
    commit_id: i64,
}

impl Writer {
    /// Applies everything up to the revision of `meta`, which was read by this connection and may be locked by it; whether there
    /// was anything.
    pub(super) async fn catch_up(
        &mut self,
        connection: &mut PgConnection,
        meta: &Meta,
        is_locked: bool,
    ) -> Result<bool, Failure> {
        self.check_identity(meta)?;
        if meta.revision == self.revision {
            return Ok(false);
        }
        self.check_tail(connection, meta).await?;
        let hub = self.publisher.hub.clone();
        hub.set_compacted(meta.compacted);
        let was = self.revision;
        while self.revision < meta.revision {
            let rows = self.read_part(connection, meta.revision).await?;
            // What was superseded may be gone: what was read is whole if it still counts as history, which nobody changes while
            // the row is locked.
            if !is_locked {
                hub.set_compacted(open::meta(&mut *connection).await?.compacted);
            }
            if hub.compacted() > self.revision {
                return Err(Failure::Fatal(Fatal::Behind));
            }
            match rows.last().map(|row| (row.event.revision(), row.commit_id)) {
                Some((revision, commit_id)) => {
                    let events: Batch = rows.into_iter().map(|row| row.event).collect();
                    (self.revision, self.mark, self.tail) =
                        (revision, commit_id, Some((revision, commit_id)));
                    self.publisher.show(&events, revision);
                    self.publisher.dispatch(&events, revision);
                }
                None => {
                    (self.revision, self.mark) = (meta.revision, meta.mark);
                    self.publisher.advance(meta.revision);
                }
            }
        }
        Ok(self.revision != was)
    }

    fn check_identity(&self, meta: &Meta) -> Result<(), Failure> {
        let known = &self.identity;
        match &meta.identity {
            found if found.store_id != known.store_id => Err(Failure::Fatal(Fatal::Replaced)),
            found if found.epoch != known.epoch => Err(Failure::Fatal(Fatal::NewEpoch)),
            _ if meta.revision < self.revision => Err(Failure::Fatal(Fatal::Lost)),
            // Somebody else has moved it there.
            _ if meta.revision == self.revision && meta.mark != self.mark => Err(Failure::Fatal(Fatal::Lost)),
            _ => Ok(()),
        }
    }

    /// The next commits, whole, up to a revision.
    async fn read_part(&mut self, connection: &mut PgConnection, until: i64) -> Result<Vec<Logged>, Failure> {
        const SELECT: &str = "SELECT l.resource, l.namespace, l.name, l.revision, l.value, l.deleted, l.previous, l.commit_id, \
            l.uid, p.value FROM log l LEFT JOIN log p ON p.revision = l.previous AND l.previous > 0 \
            WHERE l.revision > $1 AND l.revision <= $2 ORDER BY l.revision LIMIT $3";
        let mut found = sqlx::query(SELECT).bind(self.revision).bind(until).bind(PART).fetch(connection);
        let (mut rows, mut bytes, mut is_cut): (Vec<Logged>, usize, bool) = (Vec::new(), 0, false);
        while let Some(row) = found.try_next().await.map_err(Failure::Database)? {
            let row = self.event(&row).await?;
            bytes += row.event.record.value.json().len();
            let begins = rows.last().is_some_and(|last| last.commit_id != row.commit_id);
            if begins && bytes > PART_BYTES {
                is_cut = true;
                break;
            }
            rows.push(row);
        }
        drop(found);
        if !is_cut && rows.len() as i64 == PART {
            // The last commit may go on behind the part.
            let last = rows.last().map(|row| row.commit_id);
            let whole =
                rows.iter().rposition(|row| Some(row.commit_id) != last).map_or(rows.len(), |at| at + 1);
            rows.truncate(whole);
        }
        Ok(rows)
    }

    async fn event(&self, row: &PgRow) -> Result<Logged, Failure> {
        let decoder = self.reader.decoder();
        let commit_id = row.try_get(7).map_err(Failure::Database)?;
        let event = Arc::new(event(&decoder, row, 0, 9).await?);
        Ok(Logged { event, commit_id })
    }
}

/// Reads an event from the columns resource, namespace, name, revision, value, deleted, previous; the superseded value stands in
/// the column `previous_value`.
pub(super) async fn event(
    decoder: &Decoder<'_>,
    row: &PgRow,
    at: usize,
    previous_value: usize,
) -> Result<Event, Failure> {
    let resource = row::resource(row.try_get(at).map_err(Failure::Database)?);
    let record = match decoder.pg_state(&resource, row, at + 1).await {
        Ok(Ok(record)) => record,
        Ok(Err(unreadable)) => return Err(Failure::Unreadable(unreadable)),
        Err(DecodeError::Database(error)) => return Err(Failure::Database(error)),
        Err(DecodeError::Sealed { key, reason }) => return Err(Failure::Sealed { key, reason }),
    };
    let deleted: bool = row.try_get(at + 5).map_err(Failure::Database)?;
    let revision: i64 = row.try_get(at + 6).map_err(Failure::Database)?;
    let value: Option<&[u8]> = row.try_get(previous_value).map_err(Failure::Database)?;
    let previous = match value.filter(|_| revision > 0) {
        None => None,
        Some(value) => Some(Arc::new(previous(decoder, &record, revision, value).await?)),
    };
    let event_type = EventType::of(deleted, previous.is_some());
    Ok(Event { event_type, record: Arc::new(record), previous })
}

/// The state before a record, which may be unreadable.
async fn previous(
    decoder: &Decoder<'_>,
    record: &Record,
    revision: i64,
    value: &[u8],
) -> Result<Record, Failure> {
    let key = record.key.clone();
    match decoder.value(key.clone(), revision, value).await {
        Ok(Ok(previous)) => Ok(previous),
        Ok(Err(_)) => Ok(Record { key, revision, value: Value::unreadable(record.value.uid()) }),
        Err(DecodeError::Database(error)) => Err(Failure::Database(error)),
        Err(DecodeError::Sealed { key, reason }) => Err(Failure::Sealed { key, reason }),
    }
}
