//! Recently written or read states, decoded once and shared by the response, by followers, and by the next write of a controller.
//!
//! A bounded table indexed by revision, in which newer states replace older ones. Independent of the content of the states.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use portico_machinery::Object;
use portico_store::Record;

use crate::stored_object::StoredObject;

/// Maximum number of states, more than are in use at the same time.
const STATES: usize = 256;
/// Maximum size of the states in bytes of JSON; decoded they use several times as much memory.
const BYTES: usize = 64 << 10;

/// Table of recently decoded states.
pub struct RecentStates {
    slots: Box<[Mutex<Option<StoredObject>>]>,
    /// Size of all states as JSON.
    bytes: AtomicUsize,
    /// Slot to free next, after that of the newest state, as revisions only grow.
    oldest: AtomicUsize,
}

impl RecentStates {
    pub(crate) fn new() -> Self {
        let slots = (0..STATES).map(|_| Mutex::default()).collect();
        Self { slots, bytes: AtomicUsize::new(0), oldest: AtomicUsize::new(0) }
    }

    /// The state of a committed record, which shares its decoded object with all users of this table.
    pub fn get_or_insert(&self, record: Arc<Record>) -> StoredObject {
        let mut slot = self.slots[record.revision.unsigned_abs() as usize % STATES].lock();
        if let Some(state) = slot.as_ref().filter(|state| Arc::ptr_eq(state.record(), &record)) {
            return state.clone();
        }
        let stored = StoredObject::new(record);
        self.bytes.fetch_add(weight(&stored), Ordering::Relaxed);
        let replaced = slot.replace(stored.clone());
        drop(slot);
        self.subtract_size(replaced);
        while self.bytes.load(Ordering::Relaxed) > BYTES {
            let index = self.oldest.fetch_add(1, Ordering::Relaxed) % STATES;
            let oldest = self.slots[index].lock().take();
            self.subtract_size(oldest);
        }
        stored
    }

    fn subtract_size(&self, state: Option<StoredObject>) {
        let weight = state.as_ref().map_or(0, weight);
        self.bytes.fetch_sub(weight, Ordering::Relaxed);
    }

    /// Inserts a record that was just committed, with the object from which it was encoded.
    pub(crate) fn insert_written(&self, record: Arc<Record>, object: Object) -> StoredObject {
        let stored = self.get_or_insert(record);
        stored.cache_decoded(object);
        stored
    }
}

fn weight(stored: &StoredObject) -> usize {
    stored.record().value.json().len()
}

#[cfg(test)]
mod tests {
    use portico_store::{Indexed, Key, Resource, Value};

    use super::*;

    fn record(revision: i64) -> Arc<Record> {
        sized(revision, 0)
    }

    fn sized(revision: i64, bytes: usize) -> Arc<Record> {
        let key = Key::new(&Resource::new("", "nodes"), "", "n");
        let json = format!(r#"{{"metadata":{{"name":"n"}},"spec":"{}"}}"#, "x".repeat(bytes));
        let value = Value::new(json.into_bytes(), Indexed::default());
        Arc::new(Record { key, revision, value })
    }

    fn cached_revisions(recent: &RecentStates) -> Vec<i64> {
        let mut revisions: Vec<i64> =
            recent.slots.iter().filter_map(|slot| slot.lock().as_ref().map(StoredObject::revision)).collect();
        revisions.sort_unstable();
        revisions
    }

    #[test]
    fn large_states_evict_the_oldest_and_a_state_beyond_the_limit_is_not_stored() {
        let recent = RecentStates::new();
        (1..=STATES as i64 + 3).for_each(|revision| drop(recent.get_or_insert(sized(revision, BYTES / 5))));
        assert_eq!(cached_revisions(&recent).len(), 4);
        assert_eq!(cached_revisions(&recent).last(), Some(&(STATES as i64 + 3)));
        let large = recent.get_or_insert(sized(1_000, BYTES));
        assert_eq!((large.revision(), cached_revisions(&recent).len()), (1_000, 0));
        assert_eq!(recent.bytes.load(Ordering::Relaxed), 0);
        drop(recent.get_or_insert(record(1_001)));
        assert_eq!(cached_revisions(&recent), [1_001]);
    }

    #[test]
    fn a_decoded_object_is_shared_until_a_newer_state_takes_the_slot() {
        let recent = RecentStates::new();
        let first = record(7);
        let object = std::ptr::from_ref(recent.get_or_insert(first.clone()).object());
        assert!(std::ptr::eq(recent.get_or_insert(first.clone()).object(), object));
        let newer = record(7 + STATES as i64);
        assert_eq!(recent.get_or_insert(newer).object().resource_version(), (7 + STATES).to_string());
        assert_eq!(recent.get_or_insert(first).object().resource_version(), "7");
    }

    #[test]
    fn a_written_object_equals_the_decoded_one() {
        let (recent, record) = (RecentStates::new(), record(3));
        let object = Object::from_json(record.value.json()).unwrap();
        let inserted = recent.insert_written(record.clone(), object);
        assert_eq!(inserted.object(), StoredObject::new(record).object());
    }
}
