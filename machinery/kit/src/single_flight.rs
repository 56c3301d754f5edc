//! Shares one execution of some work among callers that request it at the same time.
//!
//! The first caller executes the work. If it is cancelled, the next waiting caller starts again. Results are not stored: a
//! later caller executes the work again.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, OccupiedEntry};
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

/// Executions by key. Contains one entry per key that has callers.
pub struct SingleFlight<K, T> {
    flights: Mutex<HashMap<K, Flight<T>>>,
}

/// Execution of the work for one key.
struct Flight<T> {
    result: Arc<SharedResult<T>>,
    /// Number of callers that execute or wait.
    callers: usize,
}

/// Result, once it is available; the executing caller holds the lock.
type SharedResult<T> = tokio::sync::Mutex<Option<T>>;

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
    /// Executes the work, or waits for the result of another caller with the same key.
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
    fn is_running(&self, key: &K) -> bool {
        self.flights.lock().contains_key(key)
    }
}

/// Caller that executes or waits.
struct Caller<'a, K: Clone + Eq + Hash, T> {
    owner: &'a SingleFlight<K, T>,
    key: &'a K,
    result: Arc<SharedResult<T>>,
}

impl<'a, K: Clone + Eq + Hash, T> Caller<'a, K, T> {
    fn join(owner: &'a SingleFlight<K, T>, key: &'a K) -> Self {
        let mut flights = owner.flights.lock();
        let flight = flights.entry(key.clone()).or_default();
        flight.callers += 1;
        Self { owner, key, result: Arc::clone(&flight.result) }
    }

    /// Removes the entry, so that later callers start a new execution.
    fn close(&self) {
        self.with_entry(|entry| drop(entry.remove()));
    }

    /// Calls `work` with the entry of this execution, unless it was replaced by a newer one.
    fn with_entry(&self, work: impl FnOnce(OccupiedEntry<'_, K, Flight<T>>)) {
        if let Entry::Occupied(entry) = self.owner.flights.lock().entry(self.key.clone())
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
    async fn concurrent_callers_share_one_execution_and_later_callers_start_another() {
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
    async fn the_next_caller_executes_if_the_first_is_cancelled() {
        let flights = SingleFlight::default();
        let mut first = Box::pin(flights.run(&1, std::future::pending::<u8>()));
        assert!(first.as_mut().now_or_never().is_none());
        let mut second = Box::pin(flights.run(&1, async { 2 }));
        assert!(second.as_mut().now_or_never().is_none(), "the first one works on it");
        drop(first);
        assert_eq!(second.await, 2);
        assert!(!flights.is_running(&1));
        drop(flights.run(&1, async { 3 }));
        assert!(!flights.is_running(&1));
    }
}
