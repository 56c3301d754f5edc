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
type StateKey = (u32, i64);
type ConversionCell = Arc<OnceCell<Result<Arc<Record>>>>;

/// Cached state in a slot.
struct CachedState {
    key: StateKey,
    cell: ConversionCell,
    /// Size of the state; 0 while it is being converted.
    bytes: usize,
}

/// Cache of converted states.
pub(crate) struct ConversionCache {
    slots: Box<[Mutex<Option<CachedState>>]>,
    /// Size of all cached states.
    bytes: AtomicUsize,
    /// Slot to free next if the states exceed the limit; slots are freed in turn.
    oldest: AtomicUsize,
}

impl ConversionCache {
    pub(crate) fn new() -> Self {
        let slots = (0..STATES).map(|_| Mutex::default()).collect();
        Self { slots, bytes: AtomicUsize::new(0), oldest: AtomicUsize::new(0) }
    }

    /// Returns a state that is cached or being converted, or the result of `make`. Failures are not cached.
    pub(crate) async fn get_or_make<F>(&self, key: StateKey, make: impl FnOnce() -> F) -> Result<Arc<Record>>
    where
        F: Future<Output = Result<Arc<Record>>>,
    {
        let slot = &self.slots[(key.1.unsigned_abs() as usize).wrapping_add(key.0 as usize) % STATES];
        let cell = self.cell(slot, key);
        let is_cached = cell.initialized();
        let result = cell.get_or_init(make).await.clone();
        match &result {
            Ok(_) if is_cached => {}
            Ok(record) => self.add_size(slot, &cell, record.value.json().len()),
            Err(_) => drop(slot.lock().take_if(|state| Arc::ptr_eq(&state.cell, &cell))),
        }
        result
    }

    fn cell(&self, slot: &Mutex<Option<CachedState>>, key: StateKey) -> ConversionCell {
        let mut slot = slot.lock();
        if let Some(state) = slot.as_ref().filter(|state| state.key == key) {
            return Arc::clone(&state.cell);
        }
        let cell = ConversionCell::default();
        let replaced = slot.replace(CachedState { key, cell: Arc::clone(&cell), bytes: 0 });
        self.subtract_size(replaced);
        cell
    }

    /// Adds the size of a new state, then frees the oldest ones while the limit is exceeded.
    fn add_size(&self, slot: &Mutex<Option<CachedState>>, cell: &ConversionCell, bytes: usize) {
        if let Some(state) =
            slot.lock().as_mut().filter(|state| Arc::ptr_eq(&state.cell, cell) && state.bytes == 0)
        {
            state.bytes = bytes;
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        while self.bytes.load(Ordering::Relaxed) > BYTES {
            let index = self.oldest.fetch_add(1, Ordering::Relaxed) % STATES;
            // A state that is being converted has no size yet, and watches wait for it.
            let oldest = self.slots[index].lock().take_if(|state| state.bytes > 0);
            self.subtract_size(oldest);
        }
    }

    fn subtract_size(&self, state: Option<CachedState>) {
        self.bytes.fetch_sub(state.map_or(0, |state| state.bytes), Ordering::Relaxed);
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

    fn cached_revisions(cache: &ConversionCache) -> Vec<i64> {
        let revision = |slot: &Mutex<Option<CachedState>>| slot.lock().as_ref().map(|state| state.key.1);
        cache.slots.iter().filter_map(revision).collect()
    }

    #[tokio::test]
    async fn one_conversion_serves_all_and_a_failure_is_retried() {
        let (cache, expected) = (ConversionCache::new(), record());
        let failed = cache.get_or_make((1, 7), || async { Err(Box::new(Status::internal("no"))) }).await;
        assert!(failed.is_err());
        let inserted = cache.get_or_make((1, 7), || async { Ok(expected.clone()) }).await.unwrap();
        let found = cache.get_or_make((1, 7), || async { Ok(record()) }).await.unwrap();
        assert!(Arc::ptr_eq(&inserted, &found));
        let other = cache.get_or_make((2, 7), || async { Ok(record()) }).await.unwrap();
        assert!(!Arc::ptr_eq(&inserted, &other), "versions have separate entries");
    }

    #[tokio::test]
    async fn concurrent_callers_wait_for_the_same_result() {
        let cache = ConversionCache::new();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let first = cache.get_or_make((1, 7), || async { Ok(receiver.await.unwrap()) });
        let second = cache.get_or_make((1, 7), || async { panic!("converted twice") });
        let (first, second, ()) =
            tokio::join!(biased; first, second, async { sender.send(record()).unwrap() });
        assert!(Arc::ptr_eq(&first.unwrap(), &second.unwrap()));
        assert_eq!(cache.bytes.load(Ordering::Relaxed), 2, "the size is counted once");
    }

    #[tokio::test]
    async fn states_of_a_long_replay_are_evicted_oldest_first_and_large_states_are_not_cached() {
        let cache = ConversionCache::new();
        for revision in 0..2 * STATES as i64 {
            cache.get_or_make((0, revision), || async { Ok(sized(BYTES / 8)) }).await.unwrap();
            assert!(cache.bytes.load(Ordering::Relaxed) <= BYTES);
        }
        let last = 2 * STATES as i64 - 1;
        assert_eq!(cached_revisions(&cache), (last - 7..=last).collect::<Vec<_>>());
        cache.get_or_make((0, last + 1), || async { Ok(sized(BYTES + 1)) }).await.unwrap();
        assert_eq!((cached_revisions(&cache), cache.bytes.load(Ordering::Relaxed)), (Vec::new(), 0));
    }
}
