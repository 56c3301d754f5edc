//! The SQL of one group: what the database holds of its keys, and what the group writes. One hop to SQLite's thread each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sqlx::{Error, Row, SqliteConnection};

use super::codec;
use super::read::split_path;
use super::statement::Batch;
use crate::cache::{Cache, Slot};
use crate::event::{Event, EventType};
use crate::group::Group;
use crate::key::{Key, Resource};
use crate::record::Record;

/// Begins the transaction and checks, inside it, that the database holds of these keys what the cache holds. Answers the
/// first key of which it does not.
pub(crate) async fn begin(
    connection: &mut SqliteConnection,
    cache: &Cache,
    keys: &[&Key],
) -> Result<Option<Key>, Error> {
    let mut batch = Batch::default();
    batch.statement("BEGIN IMMEDIATE");
    let numbered: Vec<(usize, &&Key)> = keys.iter().enumerate().collect();
    batch.rows(
        "WITH k(i, resource, namespace, name) AS (VALUES ",
        "(?,?,?,?)",
        ") SELECT k.i, o.revision FROM k CROSS JOIN object o \
         ON o.resource = k.resource AND o.namespace = k.namespace AND o.name = k.name",
        &numbered,
        |batch, (index, key)| {
            batch.bind(i64::try_from(*index).unwrap_or(i64::MAX))?;
            bind_key(batch, &cache.slot(key.resource()), key)
        },
    )?;
    let mut stored = vec![0_i64; keys.len()];
    for row in batch.fetch(connection).await? {
        let (index, revision): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        if let Some(slot) = usize::try_from(index).ok().and_then(|index| stored.get_mut(index)) {
            *slot = revision;
        }
    }
    let agree = |key: &Key, stored: i64| cache.get(key).map_or(0, |record| record.revision) == stored;
    Ok(keys.iter().zip(stored).find(|(key, stored)| !agree(key, *stored)).map(|(key, _)| (*key).clone()))
}

/// Ends the transaction without having written.
pub(crate) async fn rollback(connection: &mut SqliteConnection) {
    if let Err(error) = sqlx::query("ROLLBACK").execute(connection).await {
        // SQLite has rolled back by itself after some errors.
        tracing::debug!(%error, "nothing to roll back");
    }
}

/// Writes what the group has accepted and makes it durable.
pub(crate) async fn commit(
    connection: &mut SqliteConnection,
    cache: &Cache,
    group: &Group<'_>,
) -> Result<(), Error> {
    let slots = slots(cache, &group.events);
    let mut batch = Batch::default();
    let new: Vec<&Arc<Slot>> = slots.values().filter(|slot| !slot.stored.load(Ordering::Acquire)).collect();
    insert_resources(&mut batch, &new)?;
    insert_log(&mut batch, &slots, &group.events)?;
    write_objects(&mut batch, &slots, group)?;
    write_owners(&mut batch, &slots, group)?;
    batch.statement("UPDATE meta SET revision = ? WHERE id = 1");
    batch.bind(group.revision)?;
    batch.statement("COMMIT");
    batch.fetch(connection).await?;
    new.iter().for_each(|slot| slot.stored.store(true, Ordering::Release));
    Ok(())
}

type Slots = BTreeMap<Resource, Arc<Slot>>;

fn slots(cache: &Cache, events: &[Arc<Event>]) -> Slots {
    let mut slots = Slots::new();
    for event in events {
        let resource = event.record.key.resource();
        if !slots.contains_key(resource) {
            slots.insert(resource.clone(), cache.slot(resource));
        }
    }
    slots
}

fn insert_resources(batch: &mut Batch, new: &[&Arc<Slot>]) -> Result<(), Error> {
    batch.rows("INSERT INTO resource (id, api_group, resource) VALUES ", "(?,?,?)", "", new, |batch, slot| {
        batch.bind(slot.id)?;
        batch.bind(&*slot.resource.group)?;
        batch.bind(&*slot.resource.resource)
    })
}

fn insert_log(batch: &mut Batch, slots: &Slots, events: &[Arc<Event>]) -> Result<(), Error> {
    let head = "INSERT INTO log (resource, namespace, name, revision, uid, previous, deleted, value) VALUES ";
    batch.rows(head, "(?,?,?,?,?,?,?,?)", "", events, |batch, event| {
        let record = &event.record;
        bind_key(batch, slot_of(slots, &record.key), &record.key)?;
        batch.bind(record.revision)?;
        batch.bind(record.value.uid())?;
        batch.bind(event.previous.as_ref().map_or(0, |previous| previous.revision))?;
        batch.bind(i64::from(event.event_type == EventType::Deleted))?;
        batch.bind(codec::encode(record.value.json()))
    })
}

fn write_objects(batch: &mut Batch, slots: &Slots, group: &Group<'_>) -> Result<(), Error> {
    let (mut puts, mut deletes): (Vec<&Arc<Record>>, Vec<&Key>) = (Vec::new(), Vec::new());
    for (key, touched) in &group.touched {
        match (&touched.before, &touched.after) {
            (_, Some(record)) => puts.push(record),
            (Some(_), None) => deletes.push(key),
            (None, None) => {}
        }
    }
    let head = "INSERT INTO object (resource, namespace, name, revision) VALUES ";
    let tail = " ON CONFLICT DO UPDATE SET revision = excluded.revision";
    batch.rows(head, "(?,?,?,?)", tail, &puts, |batch, record| {
        bind_key(batch, slot_of(slots, &record.key), &record.key)?;
        batch.bind(record.revision)
    })?;
    let head = "DELETE FROM object WHERE (resource, namespace, name) IN (VALUES ";
    batch.rows(head, "(?,?,?)", ")", &deletes, |batch, key| bind_key(batch, slot_of(slots, key), key))
}

fn write_owners(batch: &mut Batch, slots: &Slots, group: &Group<'_>) -> Result<(), Error> {
    let (mut gone, mut new): (Vec<(&Key, &str)>, Vec<(&Key, &str)>) = (Vec::new(), Vec::new());
    for (key, touched) in &group.touched {
        let (before, after) = (owners(touched.before.as_ref()), owners(touched.after.as_ref()));
        gone.extend(before.iter().filter(|owner| !after.contains(owner)).map(|owner| (key, &**owner)));
        new.extend(after.iter().filter(|owner| !before.contains(owner)).map(|owner| (key, &**owner)));
    }
    let bind = |batch: &mut Batch, (key, owner): &(&Key, &str)| {
        batch.bind(*owner)?;
        bind_key(batch, slot_of(slots, key), key)
    };
    let head = "DELETE FROM owner WHERE (owner_uid, resource, namespace, name) IN (VALUES ";
    batch.rows(head, "(?,?,?,?)", ")", &gone, bind)?;
    let head = "INSERT OR IGNORE INTO owner (owner_uid, resource, namespace, name) VALUES ";
    batch.rows(head, "(?,?,?,?)", "", &new, bind)
}

fn owners(record: Option<&Arc<Record>>) -> &[Box<str>] {
    record.map_or(&[], |record| record.value.owners())
}

/// Every key of a group has its slot in the map: both are made of the group's events.
fn slot_of<'a>(slots: &'a Slots, key: &Key) -> &'a Slot {
    &slots[key.resource()]
}

fn bind_key(batch: &mut Batch, slot: &Slot, key: &Key) -> Result<(), Error> {
    let (namespace, name) = split_path(key.path());
    batch.bind(slot.id)?;
    batch.bind(namespace)?;
    batch.bind(name)
}
