//! SQL of one group: a single statement, and so a single round trip to the database.

use std::collections::HashSet;
use std::sync::Arc;

use sqlx::{PgConnection, Row};

use super::{clock, row};
use crate::checksum;
use crate::codec;
use crate::event::EventType;
use crate::group::{Group, TouchedKey};
use crate::key::Key;
use crate::record::Record;

/// Advances the revision and writes the group if the revision is still the one at which the group was validated. The lock of
/// the row in `meta` is held until everything is durable, so lower revisions become visible before higher ones.
const COMMIT: &str = "WITH moved AS (\
      UPDATE meta SET revision = $2, commit_id = $23 \
      WHERE id = 1 AND revision = $1 AND epoch = $3 AND commit_id = $24 RETURNING revision\
    ), gone AS (\
      DELETE FROM owner o USING moved, unnest($12::text[], $13::text[], $14::text[], $15::text[]) \
        AS g(owner_uid, resource, namespace, name) \
      WHERE o.owner_uid = g.owner_uid AND o.resource = g.resource AND o.namespace = g.namespace AND o.name = g.name\
    ), unknown AS (\
      DELETE FROM owner o USING moved, unnest($20::text[], $21::text[], $22::text[]) AS g(resource, namespace, name) \
      WHERE o.resource = g.resource AND o.namespace = g.namespace AND o.name = g.name \
        AND NOT EXISTS (SELECT 1 FROM unnest($16::text[], $17::text[], $18::text[], $19::text[]) \
          AS n(owner_uid, resource, namespace, name) WHERE n.owner_uid = o.owner_uid AND n.resource = o.resource \
          AND n.namespace = o.namespace AND n.name = o.name)\
    ), added AS (\
      INSERT INTO owner (owner_uid, resource, namespace, name) \
      SELECT n.owner_uid, n.resource, n.namespace, n.name FROM moved, \
        unnest($16::text[], $17::text[], $18::text[], $19::text[]) AS n(owner_uid, resource, namespace, name) \
      ON CONFLICT DO NOTHING\
    ), written AS (\
      INSERT INTO log (revision, resource, namespace, name, uid, previous, deleted, value, commit_id, checksum) \
      SELECT w.revision, w.resource, w.namespace, w.name, w.uid, w.previous, w.deleted, w.value, $23, w.checksum FROM moved, \
        unnest($4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::boolean[], $11::bytea[], \
        $25::bigint[]) AS w(revision, resource, namespace, name, uid, previous, deleted, value, checksum)\
    ) ";
/// Inserts marks if the second of the last commit is over: one for the last revision of that second, and one for this group.
/// The last mark is always in the second of the last commit.
const MARKS_CLAUSE: &str = concat!(
    ", clock AS (SELECT ",
    clock::now!(),
    " AS at), last AS (\
      SELECT at FROM mark ORDER BY revision DESC LIMIT 1\
    ), marked AS (\
      INSERT INTO mark (revision, at) SELECT n.revision, n.at FROM moved CROSS JOIN clock LEFT JOIN last ON true \
        CROSS JOIN LATERAL (VALUES ($1::bigint, last.at), (moved.revision, clock.at)) AS n(revision, at) \
      WHERE last.at IS DISTINCT FROM clock.at AND n.at IS NOT NULL ON CONFLICT DO NOTHING\
    ) "
);
/// Channel of the notifications with revisions of commits.
pub(super) const CHANNEL: &str = "portico_revision";
const NOTIFY_CLAUSE: &str = "SELECT count(pg_notify('portico_revision', revision::text)) FROM moved";
const NO_NOTIFY_CLAUSE: &str = "SELECT count(*) FROM moved";

/// Statement that writes a group, with or without a notification.
pub(super) struct CommitStatement(String);

impl CommitStatement {
    /// Creates the statement. `notifies`: other processes are notified.
    pub(super) fn new(notifies: bool) -> Self {
        Self(format!("{COMMIT}{MARKS_CLAUSE}{}", if notifies { NOTIFY_CLAUSE } else { NO_NOTIFY_CLAUSE }))
    }
}

/// Columns of keys.
#[derive(Default)]
struct KeyColumns {
    resources: Vec<String>,
    namespaces: Vec<String>,
    names: Vec<String>,
}

impl KeyColumns {
    fn push(&mut self, key: &Key) {
        let (namespace, name) = row::columns(key.path());
        self.resources.push(key.resource().to_string());
        self.namespaces.push(namespace.into_owned());
        self.names.push(name.into_owned());
    }
}

/// Columns of owners.
#[derive(Default)]
struct OwnerColumns {
    uids: Vec<String>,
    keys: KeyColumns,
}

impl OwnerColumns {
    fn push(&mut self, owner: &str, key: &Key) {
        self.uids.push(row::to_column(owner).into_owned());
        self.keys.push(key);
    }
}

/// Columns of states.
#[derive(Default)]
struct StateColumns {
    revisions: Vec<i64>,
    keys: KeyColumns,
    uids: Vec<String>,
    previous: Vec<i64>,
    deleted: Vec<bool>,
    values: Vec<Vec<u8>>,
    checksums: Vec<Option<i64>>,
}

/// Position of the log at which a group was validated, and the ID of its commit.
pub(super) struct CommitPosition {
    pub(super) revision: i64,
    pub(super) epoch: i64,
    /// Commit ID of the revision.
    pub(super) head_commit_id: i64,
    /// ID of the commit of the group.
    pub(super) commit_id: i64,
}

/// Writes a group. Returns true if the revision was still the one at which the group was validated.
pub(super) async fn commit(
    connection: &mut PgConnection,
    statement: &CommitStatement,
    position: &CommitPosition,
    group: &Group<'_>,
) -> Result<bool, sqlx::Error> {
    let states = states(group);
    let (removed, added, unknown) = owners(group);
    let query = sqlx::query(sqlx::AssertSqlSafe(statement.0.as_str()))
        .bind(position.revision)
        .bind(group.revision)
        .bind(position.epoch)
        .bind(states.revisions)
        .bind(states.keys.resources)
        .bind(states.keys.namespaces)
        .bind(states.keys.names)
        .bind(states.uids)
        .bind(states.previous)
        .bind(states.deleted)
        .bind(states.values)
        .bind(removed.uids)
        .bind(removed.keys.resources)
        .bind(removed.keys.namespaces)
        .bind(removed.keys.names)
        .bind(added.uids)
        .bind(added.keys.resources)
        .bind(added.keys.namespaces)
        .bind(added.keys.names)
        .bind(unknown.resources)
        .bind(unknown.namespaces)
        .bind(unknown.names)
        .bind(position.commit_id)
        .bind(position.head_commit_id)
        .bind(states.checksums);
    let updated: i64 = query.fetch_one(connection).await?.try_get(0)?;
    Ok(updated == 1)
}

fn states(group: &Group<'_>) -> StateColumns {
    let mut states = StateColumns::default();
    for (event, sealed) in group.events.iter().zip(&group.sealed_values) {
        let record = &event.record;
        states.revisions.push(record.revision);
        states.keys.push(&record.key);
        states.uids.push(row::to_column(record.value.uid()).into_owned());
        states.previous.push(event.previous.as_ref().map_or(0, |previous| previous.revision));
        states.deleted.push(event.event_type == EventType::Deleted);
        let value = match sealed {
            Some(sealed) => codec::encode_sealed(sealed),
            None => codec::encode(record.value.json()),
        };
        states.checksums.push(checksum::compute_checksum(&record.key, record.revision, &value));
        states.values.push(value);
    }
    states
}

/// Returns removed owner entries, added ones, and the objects whose previous owners are unknown.
fn owners(group: &Group<'_>) -> (OwnerColumns, OwnerColumns, KeyColumns) {
    let (mut removed, mut added, mut unknown) =
        (OwnerColumns::default(), OwnerColumns::default(), KeyColumns::default());
    for (key, TouchedKey { before, after }) in &group.touched {
        let (old, new) = (owners_of(before.as_ref()), owners_of(after.as_ref()));
        old.difference(&new).for_each(|owner| removed.push(owner, key));
        new.difference(&old).for_each(|owner| added.push(owner, key));
        if before.as_ref().is_some_and(|record| record.value.is_unreadable()) {
            unknown.push(key);
        }
    }
    (removed, added, unknown)
}

fn owners_of(record: Option<&Arc<Record>>) -> HashSet<&str> {
    record.map_or_else(HashSet::new, |record| record.value.owners().iter().map(|owner| &**owner).collect())
}
