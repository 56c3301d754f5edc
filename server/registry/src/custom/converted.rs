//! Cache of conversions for watches of the same version that receive the same event: the webhook is called once, and all waiting
//! watches get its failure.
//!
//! A table indexed by revision, with limits on states and bytes, in which newer states replace older ones. Independent of the
//! kind of conversion.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use portico_store::Record;
use tokio::sync::OnceCell;

use crate::Result;

/// Converted states that watches of one resource share.
///
/// Limit (Webhooks): watches that are further behind convert on their own.
const STATES: usize = 256;
/// Size of these converted states.
///
/// Limit (Webhooks, bytes): larger ones are shared only with watches that already wait for them.
const BYTES: usize = 4 << 20;

/// ID of a served version, and a revision.
type Key = (u32, i64);
type Cell = Arc<OnceCell<Result<Arc<Record>>>>;

/// Last state in this slot.
struct Held {
    key: Key,
    cell: Cell,
    /// Size of the state; 0 while it is being converted.
    bytes: usize,
}

/// Cache of converted states.
pub(crate) struct Converted {
    slots: Box<[Mutex<Option<Held>>]>,
    /// Size of all cached states.
    bytes: AtomicUsize,
    /// Slot to free next if the states exceed the limit; slots are freed in turn.
    oldest: AtomicUsize,
}

impl Converted {
    pub(crate) fn new() -> Self {
        let slots = (0..STATES).map(|_| Mutex::default()).collect();
        Self { slots, bytes: AtomicUsize::new(0), oldest: AtomicUsize::new(0) }
    }

    /// Returns a state that is cached or being converted, or the result of `make`. Failures are not cached.
    pub(crate) async fn get_or_make<F>(&self, key: Key, make: impl FnOnce() -> F) -> Result<Arc<Record>>
    where
        F: Future<Output = Result<Arc<Record>>>,
    {
        let slot = &self.slots[(key.1.unsigned_abs() as usize).wrapping_add(key.0 as usize) % STATES];
        let cell = self.cell(slot, key);
        let is_made = cell.initialized();
        let made = cell.get_or_init(make).await.clone();
        match &made {
            Ok(_) if is_made => {}
            Ok(record) => self.weigh(slot, &cell, record.value.json().len()),
            Err(_) => drop(slot.lock().take_if(|held| Arc::ptr_eq(&held.cell, &cell))),
        }
        made
    }

    fn cell(&self, slot: &Mutex<Option<Held>>, key: Key) -> Cell {
        let mut slot = slot.lock();
        if let Some(held) = slot.as_ref().filter(|held| held.key == key) {
            return Arc::clone(&held.cell);
        }
        let cell = Cell::default();
        let before = slot.replace(Held { key, cell: Arc::clone(&cell), bytes: 0 });
        self.release(before);
        cell
    }

    /// Adds the size of a new state, then frees the oldest ones while the limit is exceeded.
    fn weigh(&self, slot: &Mutex<Option<Held>>, cell: &Cell, bytes: usize) {
        if let Some(held) =
            slot.lock().as_mut().filter(|held| Arc::ptr_eq(&held.cell, cell) && held.bytes == 0)
        {
            held.bytes = bytes;
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        while self.bytes.load(Ordering::Relaxed) > BYTES {
            let at = self.oldest.fetch_add(1, Ordering::Relaxed) % STATES;
            // A state that is being converted has no size yet, and watches wait for it.
            let oldest = self.slots[at].lock().take_if(|held| held.bytes > 0);
            self.release(oldest);
        }
    }

    fn release(&self, held: Option<Held>) {
        self.bytes.fetch_sub(held.map_or(0, |held| held.bytes), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use portico_machinery::Status;
    use portico_store::{Indexed, Key, Resource, Value};

    use super::*;

    fn record() -> Arc<Record> {
        sized(2)
    }

    fn sized(bytes: usize) -> Arc<Record> {
        let value = Value::new("x".repeat(bytes).into_bytes(), Indexed::default());
        Arc::new(Record { key: Key::new(&Resource::new("g", "r"), "", "n"), revision: 7, value })
    }

    fn remembered(converted: &Converted) -> Vec<i64> {
        let revision = |slot: &Mutex<Option<Held>>| slot.lock().as_ref().map(|held| held.key.1);
        converted.slots.iter().filter_map(revision).collect()
    }

    #[tokio::test]
    async fn one_converts_for_all_and_a_failure_is_tried_again() {
        let (converted, shown) = (Converted::new(), record());
        let failed = converted.get_or_make((1, 7), || async { Err(Box::new(Status::internal("no"))) }).await;
        assert!(failed.is_err());
        let made = converted.get_or_make((1, 7), || async { Ok(shown.clone()) }).await.unwrap();
        let found = converted.get_or_make((1, 7), || async { Ok(record()) }).await.unwrap();
        assert!(Arc::ptr_eq(&made, &found));
        let other = converted.get_or_make((2, 7), || async { Ok(record()) }).await.unwrap();
        assert!(!Arc::ptr_eq(&made, &other), "another version is another state");
    }

    #[tokio::test]
    async fn those_who_come_meanwhile_wait_for_the_same_answer() {
        let converted = Converted::new();
        let (answer, asked) = tokio::sync::oneshot::channel();
        let first = converted.get_or_make((1, 7), || async { Ok(asked.await.unwrap()) });
        let second = converted.get_or_make((1, 7), || async { panic!("asked twice") });
        let (first, second, ()) =
            tokio::join!(biased; first, second, async { answer.send(record()).unwrap() });
        assert!(Arc::ptr_eq(&first.unwrap(), &second.unwrap()));
        assert_eq!(converted.bytes.load(Ordering::Relaxed), 2, "counted once");
    }

    #[tokio::test]
    async fn states_of_a_long_replay_leave_with_the_oldest_first_and_none_stays_that_is_too_large() {
        let converted = Converted::new();
        for revision in 0..2 * STATES as i64 {
            converted.get_or_make((0, revision), || async { Ok(sized(BYTES / 8)) }).await.unwrap();
            assert!(converted.bytes.load(Ordering::Relaxed) <= BYTES);
        }
        let last = 2 * STATES as i64 - 1;
        assert_eq!(remembered(&converted), (last - 7..=last).collect::<Vec<_>>());
        converted.get_or_make((0, last + 1), || async { Ok(sized(BYTES + 1)) }).await.unwrap();
        assert_eq!((remembered(&converted), converted.bytes.load(Ordering::Relaxed)), (Vec::new(), 0));
    }
}
