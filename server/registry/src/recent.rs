//! The states that were written or read last, decoded once for all who look inside: the answer to the writer, the
//! followers that hear of it, the controller that writes a status next.
//!
//! A bounded table by revision in which newer states push out older ones. It must not know what is in them.

use std::sync::Arc;

use parking_lot::Mutex;
use portico_machinery::Object;
use portico_store::Record;

use crate::stored::Stored;

/// How many states are remembered: more than are under way at once, and a megabyte when they are decoded.
const STATES: usize = 256;

/// See the module.
pub(crate) struct Recent {
    slots: Box<[Mutex<Option<Stored>>]>,
}

impl Recent {
    pub(crate) fn new() -> Self {
        Self { slots: (0..STATES).map(|_| Mutex::default()).collect() }
    }

    /// A committed record, sharing what others have decoded of it.
    pub(crate) fn stored(&self, record: Arc<Record>) -> Stored {
        let mut slot = self.slots[record.revision.unsigned_abs() as usize % STATES].lock();
        match &*slot {
            Some(known) if Arc::ptr_eq(known.record(), &record) => known.clone(),
            _ => slot.insert(Stored::new(record)).clone(),
        }
    }

    /// A record that was just committed, and the object that it was encoded from.
    pub(crate) fn written(&self, record: Arc<Record>, object: Object) -> Stored {
        let stored = self.stored(record);
        stored.know(object);
        stored
    }
}

#[cfg(test)]
mod tests {
    use portico_store::{Indexed, Key, Resource, Value};

    use super::*;

    fn record(revision: i64) -> Arc<Record> {
        let key = Key::new(&Resource::new("", "nodes"), "", "n");
        let value = Value::new(br#"{"metadata":{"name":"n"}}"#.as_slice(), Indexed::default());
        Arc::new(Record { key, revision, value })
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
