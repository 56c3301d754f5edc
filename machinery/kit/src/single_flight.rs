//! Work that several ask for at once is done once, and all of them get what comes of it.
//!
//! Whoever comes first does it. Should they give up, the next of those who wait begins anew. What was done is not remembered: who
//! comes later has it done again.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

/// See the module. There are as many entries as there are keys that somebody waits for.
pub struct SingleFlight<K, T> {
    flights: Mutex<HashMap<K, Arc<Flight<T>>>>,
}

/// What came of it, once it is done; whoever works on it keeps the lock.
type Flight<T> = tokio::sync::Mutex<Option<T>>;

impl<K, T> Default for SingleFlight<K, T> {
    fn default() -> Self {
        Self { flights: Mutex::default() }
    }
}

impl<K: Clone + Eq + Hash, T: Clone> SingleFlight<K, T> {
    /// Does this work, or waits for somebody else who does the same.
    pub async fn run(&self, key: &K, work: impl Future<Output = T>) -> T {
        let flight = Arc::clone(self.flights.lock().entry(key.clone()).or_default());
        let aboard = Aboard { all: self, key, flight };
        let mut done = aboard.flight.lock().await;
        if let Some(done) = &*done {
            return done.clone();
        }
        let result = work.await;
        *done = Some(result.clone());
        aboard.land();
        result
    }

    /// Whether somebody works on this.
    pub fn is_under_way(&self, key: &K) -> bool {
        self.flights.lock().contains_key(key)
    }
}

/// Somebody who waits or works.
struct Aboard<'a, K: Eq + Hash, T> {
    all: &'a SingleFlight<K, T>,
    key: &'a K,
    flight: Arc<Flight<T>>,
}

impl<K: Clone + Eq + Hash, T> Aboard<'_, K, T> {
    /// Who comes from now on begins another one.
    fn land(&self) {
        let mut flights = self.all.flights.lock();
        if let Entry::Occupied(entry) = flights.entry(self.key.clone())
            && Arc::ptr_eq(entry.get(), &self.flight)
        {
            entry.remove();
        }
    }
}

impl<K: Eq + Hash, T> Drop for Aboard<'_, K, T> {
    fn drop(&mut self) {
        let mut flights = self.all.flights.lock();
        let is_last = Arc::strong_count(&self.flight) == 2;
        if is_last && flights.get(self.key).is_some_and(|flight| Arc::ptr_eq(flight, &self.flight)) {
            flights.remove(self.key);
        }
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
