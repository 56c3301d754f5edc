//! Work that several ask for at once is done once, and all of them get what comes of it.
//!
//! Whoever comes first does it. Should they give up, the next of those who wait begins anew. What was done is not remembered: who
//! comes later has it done again.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, OccupiedEntry};
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

/// See the module. There are as many entries as there are keys that somebody waits for.
pub struct SingleFlight<K, T> {
    flights: Mutex<HashMap<K, Flight<T>>>,
}

/// Work that is under way.
struct Flight<T> {
    result: Arc<Outcome<T>>,
    /// Who works or waits.
    callers: usize,
}

/// What came of it, once it is done; whoever works on it keeps the lock.
type Outcome<T> = tokio::sync::Mutex<Option<T>>;

impl<T> Default for Flight<T> {
    fn default() -> Self {
        Self { result: Arc::default(), callers: 0 }
    }
}

impl<K, T> Default for SingleFlight<K, T> {
    fn default() -> Self {
        Self { flights: Mutex::default() }
    }
}

impl<K: Clone + Eq + Hash, T: Clone> SingleFlight<K, T> {
    /// Does this work, or waits for somebody else who does the same.
    pub async fn run(&self, key: &K, work: impl Future<Output = T>) -> T {
        let caller = Caller::join(self, key);
        let mut done = caller.result.lock().await;
        if let Some(done) = &*done {
            return done.clone();
        }
        let result = work.await;
        *done = Some(result.clone());
        caller.close();
        result
    }

    #[cfg(test)]
    fn is_under_way(&self, key: &K) -> bool {
        self.flights.lock().contains_key(key)
    }
}

/// Somebody who waits or works.
struct Caller<'a, K: Clone + Eq + Hash, T> {
    all: &'a SingleFlight<K, T>,
    key: &'a K,
    result: Arc<Outcome<T>>,
}

impl<'a, K: Clone + Eq + Hash, T> Caller<'a, K, T> {
    fn join(all: &'a SingleFlight<K, T>, key: &'a K) -> Self {
        let mut flights = all.flights.lock();
        let flight = flights.entry(key.clone()).or_default();
        flight.callers += 1;
        Self { all, key, result: Arc::clone(&flight.result) }
    }

    /// Who comes from now on begins another one.
    fn close(&self) {
        self.with_entry(|entry| drop(entry.remove()));
    }

    /// Does something with the entry, unless another one has its place.
    fn with_entry(&self, work: impl FnOnce(OccupiedEntry<'_, K, Flight<T>>)) {
        if let Entry::Occupied(entry) = self.all.flights.lock().entry(self.key.clone())
            && Arc::ptr_eq(&entry.get().result, &self.result)
        {
            work(entry);
        }
    }
}

impl<K: Clone + Eq + Hash, T> Drop for Caller<'_, K, T> {
    fn drop(&mut self) {
        self.with_entry(|mut entry| {
            entry.get_mut().callers -= 1;
            if entry.get().callers == 0 {
                entry.remove();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt as _;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn what_several_ask_for_is_done_once_and_again_for_who_comes_later() {
        let (flights, count, go) = (SingleFlight::default(), AtomicUsize::new(0), Notify::new());
        let work = || async {
            let n = count.fetch_add(1, Ordering::Relaxed);
            go.notified().await;
            n
        };
        let all = futures::future::join3(flights.run(&"k", work()), flights.run(&"k", work()), async {
            let other = flights.run(&"other", async { 7 }).await;
            go.notify_one();
            other
        });
        assert_eq!(all.await, (0, 0, 7));
        go.notify_one();
        assert_eq!(flights.run(&"k", work()).await, 1);
        assert!(flights.flights.lock().is_empty());
    }

    #[tokio::test]
    async fn who_gives_up_leaves_it_to_the_next() {
        let flights = SingleFlight::default();
        let mut first = Box::pin(flights.run(&1, std::future::pending::<u8>()));
        assert!(first.as_mut().now_or_never().is_none());
        let mut second = Box::pin(flights.run(&1, async { 2 }));
        assert!(second.as_mut().now_or_never().is_none(), "the first one works on it");
        drop(first);
        assert_eq!(second.await, 2);
        assert!(!flights.is_under_way(&1));
        drop(flights.run(&1, async { 3 }));
        assert!(!flights.is_under_way(&1));
    }
}
