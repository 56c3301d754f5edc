//! What was converted for one watch, for the others of the same version that get the same event: a webhook is asked
//! once, and all who wait for it get its failure.
//!
//! A bounded table by revision in which newer states push out older ones. It must not know how objects are converted.

use std::sync::Arc;

use parking_lot::Mutex;
use portico_store::Record;
use tokio::sync::OnceCell;

use crate::Result;

/// How many states are remembered: watches that are further apart than this convert on their own.
const STATES: usize = 256;

/// A served version and a revision.
type Key = (u32, i64);
type Cell = Arc<OnceCell<Result<Arc<Record>>>>;
/// The last state that had this place.
type Slot = Mutex<Option<(Key, Cell)>>;

/// See the module.
pub(crate) struct Converted {
    slots: Box<[Slot]>,
}

impl Converted {
    pub(crate) fn new() -> Self {
        Self { slots: (0..STATES).map(|_| Mutex::default()).collect() }
    }

    /// The state that somebody has converted or is converting, or else what `make` gives. Failures are not kept.
    pub(crate) async fn get_or_make<F>(&self, key: Key, make: impl FnOnce() -> F) -> Result<Arc<Record>>
    where
        F: Future<Output = Result<Arc<Record>>>,
    {
        let slot = &self.slots[(key.1.unsigned_abs() as usize).wrapping_add(key.0 as usize) % STATES];
        let cell = match &mut *slot.lock() {
            Some((known, cell)) if *known == key => Arc::clone(cell),
            other => Arc::clone(&other.insert((key, Cell::default())).1),
        };
        let made = cell.get_or_init(make).await.clone();
        if made.is_err() {
            slot.lock().take_if(|(_, held)| Arc::ptr_eq(held, &cell));
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use portico_machinery::Status;
    use portico_store::{Indexed, Key, Resource, Value};

    use super::*;

    fn record() -> Arc<Record> {
        let value = Value::new(b"{}".as_slice(), Indexed::default());
        Arc::new(Record { key: Key::new(&Resource::new("g", "r"), "", "n"), revision: 7, value })
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
    }
}
