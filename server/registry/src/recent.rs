//! Recently written or read states, decoded once and shared by the response, by followers, and by the next write of a controller.
//!
//! A bounded table indexed by revision, in which newer states replace older ones. Independent of the content of the states.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use portico_machinery::Object;
use portico_store::Record;

use crate::stored::Stored;

/// Maximum number of states, more than are in use at the same time.
const STATES: usize = 256;
/// Maximum size of the states in bytes of JSON; decoded they use several times as much memory.
const BYTES: usize = 64 << 10;

/// Table of recently decoded states.
pub struct Recent {
    slots: Box<[Mutex<Option<Stored>>]>,
    /// Size of all states as JSON.
    bytes: AtomicUsize,
    /// Slot to free next, after that of the newest state, as revisions only grow.
    oldest: AtomicUsize,
}

impl Recent {
    pub(crate) fn new() -> Self {
        let slots = (0..STATES).map(|_| Mutex::default()).collect();
        Self { slots, bytes: AtomicUsize::new(0), oldest: AtomicUsize::new(0) }
    }

    /// The state of a committed record, which shares its decoded object with all users of this table.
    pub fn stored(&self, record: Arc<Record>) -> Stored {
        let mut slot = self.slots[record.revision.unsigned_abs() as usize % STATES].lock();
        if let Some(known) = slot.as_ref().filter(|known| Arc::ptr_eq(known.record(), &record)) {
            return known.clone();
        }
        let stored = Stored::new(record);
        self.bytes.fetch_add(weight(&stored), Ordering::Relaxed);
        let before = slot.replace(stored.clone());
        drop(slot);
        self.forget(before);
        while self.bytes.load(Ordering::Relaxed) > BYTES {
            let at = self.oldest.fetch_add(1, Ordering::Relaxed) % STATES;
            let oldest = self.slots[at].lock().take();
            self.forget(oldest);
        }
        stored
    }

    fn forget(&self, state: Option<Stored>) {
        let weight = state.as_ref().map_or(0, weight);
        self.bytes.fetch_sub(weight, Ordering::Relaxed);
    }

    /// Inserts a record that was just committed, with the object from which it was encoded.
    pub(crate) fn written(&self, record: Arc<Record>, object: Object) -> Stored {
        let stored = self.stored(record);
        stored.know(object);
        stored
    }
}

fn weight(stored: &Stored) -> usize {
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

    fn remembered(recent: &Recent) -> Vec<i64> {
        let mut revisions: Vec<i64> =
            recent.slots.iter().filter_map(|slot| slot.lock().as_ref().map(Stored::revision)).collect();
        revisions.sort_unstable();
        revisions
    }

    #[test]
    fn large_states_leave_with_the_oldest_first_and_none_stays_that_is_too_large() {
        let recent = Recent::new();
        (1..=STATES as i64 + 3).for_each(|revision| drop(recent.stored(sized(revision, BYTES / 5))));
        assert_eq!(remembered(&recent).len(), 4);
        assert_eq!(remembered(&recent).last(), Some(&(STATES as i64 + 3)));
        let large = recent.stored(sized(1_000, BYTES));
        assert_eq!((large.revision(), remembered(&recent).len()), (1_000, 0));
        assert_eq!(recent.bytes.load(Ordering::Relaxed), 0);
        drop(recent.stored(record(1_001)));
        assert_eq!(remembered(&recent), [1_001]);
    }

    #[test]
    fn what_one_has_decoded_the_next_finds_until_a_newer_state_takes_the_slot() {
        let recent = Recent::new();
        let first = record(7);
        let object = std::ptr::from_ref(recent.stored(first.clone()).object());
        assert!(std::ptr::eq(recent.stored(first.clone()).object(), object));
        let newer = record(7 + STATES as i64);
        assert_eq!(recent.stored(newer).object().resource_version(), (7 + STATES).to_string());
        assert_eq!(recent.stored(first).object().resource_version(), "7");
    }

    #[test]
    fn what_a_write_hands_on_is_what_a_reader_decodes() {
        let (recent, record) = (Recent::new(), record(3));
        let object = Object::from_json(record.value.json()).unwrap();
        let handed = recent.written(record.clone(), object);
        assert_eq!(handed.object(), Stored::new(record).object());
    }
}
