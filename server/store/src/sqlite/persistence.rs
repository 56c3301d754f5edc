//! SQL of one group: the transaction is one text, and so requires one hop to SQLite's thread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sqlx::{Error, SqliteConnection};

use super::statement::StatementBatch;
use super::{archive_writes, maintenance};
use crate::cache::{Cache, Slot};
use crate::checksum;
use crate::codec;
use crate::event::{Event, EventType};
use crate::group::{Group, TouchedKey};
use crate::key::{Key, Resource, split_path};
use crate::record::Record;

/// Runs the transaction of a group: checks that the database has the states of all keys that the cache had when the group was
/// validated, writes the accepted operations, and commits.
///
/// # Errors
/// If [`is_state_mismatch`] is true for the error, the cache was wrong; otherwise an error of the database. The
/// transaction is still open.
pub(crate) async fn commit(
    connection: &mut SqliteConnection,
    cache: &Cache,
    group: &Group<'_>,
    clock: Option<NewSecond>,
    history: HistoryMode,
) -> Result<(), Error> {
    let slots = slots(cache, group);
    let mut batch = StatementBatch::default();
    batch.statement("BEGIN IMMEDIATE");
    check_states(&mut batch, &slots, group)?;
    let new: Vec<&Arc<Slot>> =
        slots.values().filter(|slot| !slot.is_stored.load(Ordering::Acquire)).collect();
    insert_resources(&mut batch, &new)?;
    match history {
        HistoryMode::Keep => insert_log(&mut batch, &slots, &rows(group))?,
        HistoryMode::Discard { .. } => replace_states(&mut batch, &slots, group)?,
    }
    write_owners(&mut batch, &slots, group)?;
    batch.statement("UPDATE meta SET revision = ? WHERE id = 1");
    batch.bind(group.revision)?;
    if let HistoryMode::Discard { since } = history {
        archive_writes::note_discarded(&mut batch, group.revision)?;
        maintenance::delete_history(&mut batch, since, group.revision)?;
    }
    if let Some(tick) = clock {
        match history {
            HistoryMode::Keep => tick.insert(&mut batch, group.revision)?,
            HistoryMode::Discard { .. } => tick.replace(&mut batch, group.revision)?,
        }
    }
    batch.statement("COMMIT");
    batch.fetch(connection).await?;
    new.iter().for_each(|slot| slot.is_stored.store(true, Ordering::Release));
    Ok(())
}

/// Treatment of the states that a group supersedes.
#[derive(Clone, Copy)]
pub(crate) enum HistoryMode {
    /// Superseded states stay, and deletions leave tombstones, until they are compacted.
    Keep,
    /// Superseded states are deleted, and deletions leave no tombstones: the compaction point follows the group.
    Discard {
        /// Compaction point before the group.
        since: i64,
    },
}

/// Start of a second. The last mark is always in the second of the last commit, and further groups in this second write none.
#[derive(Clone, Copy)]
pub(crate) struct NewSecond {
    /// Unix time in seconds.
    pub(crate) time: i64,
    /// Last revision before this group.
    pub(crate) previous: i64,
}

impl NewSecond {
    /// Inserts two marks: one for the last revision of the previous second, and one for this group.
    fn insert(self, batch: &mut StatementBatch, revision: i64) -> Result<(), Error> {
        batch.statement(
            "INSERT OR IGNORE INTO mark (revision, at) SELECT ?, at FROM mark ORDER BY revision DESC LIMIT 1",
        );
        batch.bind(self.previous)?;
        batch.statement("INSERT OR REPLACE INTO mark (revision, at) VALUES (?, ?)");
        batch.bind(revision)?;
        batch.bind(self.time)
    }

    /// Replaces the last mark by one for this group, which needs no space. The states before it are deleted.
    fn replace(self, batch: &mut StatementBatch, revision: i64) -> Result<(), Error> {
        batch.statement(
            "UPDATE mark SET revision = ?, at = ? WHERE revision = (SELECT max(revision) FROM mark)",
        );
        batch.bind(revision)?;
        batch.bind(self.time)
    }
}

/// True if an error of [`commit`] means that the cache and the database have different states of a key.
pub(crate) fn is_state_mismatch(error: &Error) -> bool {
    const SQLITE_CONSTRAINT_CHECK: &str = "275";
    error
        .as_database_error()
        .and_then(|error| error.code())
        .is_some_and(|code| code == SQLITE_CONSTRAINT_CHECK)
}

/// Inserts no row if all states are equal, otherwise a second row into `meta`, which its CHECK rejects: outside of triggers,
/// SQLite has no other way to abort a transaction on a condition.
fn check_states(batch: &mut StatementBatch, slots: &Slots, group: &Group<'_>) -> Result<(), Error> {
    let keys: Vec<_> = group.touched.iter().collect();
    batch.rows(
        "WITH k(resource, namespace, name, revision) AS (VALUES ",
        "(?,?,?,?)",
        ") INSERT INTO meta (id, store_id, epoch, revision, compacted) SELECT 2, '', 0, 0, 0 FROM k WHERE \
         ifnull((SELECT iif(l.deleted, 0, l.revision) FROM log l WHERE l.resource = k.resource \
         AND l.namespace = k.namespace AND l.name = k.name ORDER BY l.revision DESC LIMIT 1), 0) <> k.revision",
        &keys,
        |batch, (key, touched)| {
            bind_key(batch, slot_of(slots, key), key)?;
            batch.bind(touched.before.as_ref().map_or(0, |record| record.revision))
        },
    )
}

/// Event, and the sealed form of its value if it is sealed.
type Row<'a> = (&'a Arc<Event>, &'a Option<Arc<[u8]>>);

type Slots = BTreeMap<Resource, Arc<Slot>>;

fn rows<'a>(group: &'a Group<'_>) -> Vec<Row<'a>> {
    group.events.iter().zip(&group.sealed_values).collect()
}

fn slots(cache: &Cache, group: &Group<'_>) -> Slots {
    let mut slots = Slots::new();
    for key in group.touched.keys() {
        if !slots.contains_key(key.resource()) {
            slots.insert(key.resource().clone(), cache.slot(key.resource()));
        }
    }
    slots
}

fn insert_resources(batch: &mut StatementBatch, new: &[&Arc<Slot>]) -> Result<(), Error> {
    batch.rows("INSERT INTO resource (id, api_group, resource) VALUES ", "(?,?,?)", "", new, |batch, slot| {
        batch.bind(slot.id)?;
        batch.bind(&*slot.resource.group)?;
        batch.bind(&*slot.resource.resource)
    })
}

/// Deletes the states of all written objects, then inserts the states that the group leaves.
fn replace_states(batch: &mut StatementBatch, slots: &Slots, group: &Group<'_>) -> Result<(), Error> {
    let is_final_state = |event: &Event| {
        let final_state = group.touched.get(&event.record.key).and_then(|touched| touched.after.as_ref());
        final_state.is_some_and(|state| state.revision == event.record.revision)
    };
    let keys: BTreeSet<&Key> = group.events.iter().map(|event| &event.record.key).collect();
    let keys: Vec<&Key> = keys.into_iter().collect();
    let head = "DELETE FROM log WHERE (resource, namespace, name) IN (VALUES ";
    batch.rows(head, "(?,?,?)", ")", &keys, |batch, key| bind_key(batch, slot_of(slots, key), key))?;
    let final_rows: Vec<_> = rows(group).into_iter().filter(|(event, _)| is_final_state(event)).collect();
    insert_log(batch, slots, &final_rows)
}

fn insert_log(batch: &mut StatementBatch, slots: &Slots, rows: &[Row<'_>]) -> Result<(), Error> {
    let head = "INSERT INTO log (resource, namespace, name, revision, uid, previous, deleted, value, checksum) VALUES ";
    batch.rows(head, "(?,?,?,?,?,?,?,?,?)", "", rows, |batch, (event, sealed)| {
        let record = &event.record;
        bind_key(batch, slot_of(slots, &record.key), &record.key)?;
        batch.bind(record.revision)?;
        batch.bind(record.value.uid())?;
        batch.bind(event.previous.as_ref().map_or(0, |previous| previous.revision))?;
        batch.bind(i64::from(event.event_type == EventType::Deleted))?;
        let value = match sealed {
            Some(sealed) => codec::encode_sealed(sealed),
            None => codec::encode(record.value.json()),
        };
        let checksum = checksum::compute_checksum(&record.key, record.revision, &value);
        batch.bind(value)?;
        batch.bind(checksum)
    })
}

fn write_owners(batch: &mut StatementBatch, slots: &Slots, group: &Group<'_>) -> Result<(), Error> {
    let mut removed: Vec<(&Key, &str)> = Vec::new();
    let mut added: Vec<(&Key, &str)> = Vec::new();
    for (key, touched) in &group.touched {
        let (before, after) = (owners(touched.before.as_ref()), owners(touched.after.as_ref()));
        removed.extend(before.iter().filter(|owner| !after.contains(owner)).map(|owner| (key, &**owner)));
        added.extend(after.iter().filter(|owner| !before.contains(owner)).map(|owner| (key, &**owner)));
    }
    let unknown: Vec<&Key> = group
        .touched
        .iter()
        .filter(|(_, touched)| had_unreadable_value(touched))
        .map(|(key, _)| key)
        .collect();
    // The owners of an unreadable object are only in this table. It is scanned without an index; this case is rare.
    let head = "DELETE FROM owner WHERE (resource, namespace, name) IN (VALUES ";
    batch.rows(head, "(?,?,?)", ")", &unknown, |batch, key| bind_key(batch, slot_of(slots, key), key))?;
    let bind = |batch: &mut StatementBatch, (key, owner): &(&Key, &str)| {
        batch.bind(*owner)?;
        bind_key(batch, slot_of(slots, key), key)
    };
    let head = "DELETE FROM owner WHERE (owner_uid, resource, namespace, name) IN (VALUES ";
    batch.rows(head, "(?,?,?,?)", ")", &removed, bind)?;
    let head = "INSERT OR IGNORE INTO owner (owner_uid, resource, namespace, name) VALUES ";
    batch.rows(head, "(?,?,?,?)", "", &added, bind)
}

fn had_unreadable_value(touched: &TouchedKey) -> bool {
    touched.before.as_ref().is_some_and(|record| record.value.is_unreadable())
}

fn owners(record: Option<&Arc<Record>>) -> &[Box<str>] {
    record.map_or(&[], |record| record.value.owners())
}

/// Returns the slot of a key. The map was created from the keys of the group.
fn slot_of<'a>(slots: &'a Slots, key: &Key) -> &'a Slot {
    &slots[key.resource()]
}

fn bind_key(batch: &mut StatementBatch, slot: &Slot, key: &Key) -> Result<(), Error> {
    let (namespace, name) = split_path(key.path());
    batch.bind(slot.id)?;
    batch.bind(namespace)?;
    batch.bind(name)
}
