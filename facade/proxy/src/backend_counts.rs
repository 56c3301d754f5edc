//! Request counters of backends, by Service. They outlive the connections and policies that the requests used.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use portico_machinery::route::ServiceReference;

/// Counters of the backend of one Service. They live as long as a route that was used, or a transport, refers to them.
#[derive(Debug)]
pub(crate) struct BackendCounts {
    pub(crate) service: ServiceReference,
    waits: AtomicU64,
    refused: AtomicU64,
}

impl BackendCounts {
    /// Counts a request that waits for a connection to open.
    pub(crate) fn record_wait(&self) {
        self.waits.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that exceeded the limit.
    pub(crate) fn record_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the requests that had to wait, and the requests that exceeded the limit.
    pub(crate) fn read(&self) -> (u64, u64) {
        (self.waits.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed))
    }
}

/// Counters of all Services in use.
#[derive(Debug, Default)]
pub(crate) struct BackendCountsRegistry {
    by_service: Mutex<HashMap<ServiceReference, Weak<BackendCounts>>>,
}

impl BackendCountsRegistry {
    /// Returns the counters of this Service; creates them if there are none.
    pub(crate) fn get_or_create(&self, service: &ServiceReference) -> Arc<BackendCounts> {
        let mut by_service = self.by_service.lock();
        if let Some(counts) = by_service.get(service).and_then(Weak::upgrade) {
            return counts;
        }
        let (service, waits, refused) = (service.clone(), AtomicU64::new(0), AtomicU64::new(0));
        let counts = Arc::new(BackendCounts { service: service.clone(), waits, refused });
        by_service.insert(service, Arc::downgrade(&counts));
        counts
    }

    pub(crate) fn all(&self) -> Vec<Arc<BackendCounts>> {
        self.by_service.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// Removes Services without routes or transports.
    pub(crate) fn sweep(&self) {
        self.by_service.lock().retain(|_, counts| counts.strong_count() > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_live_as_long_as_a_user_of_the_service() {
        let all = BackendCountsRegistry::default();
        let service = ServiceReference { namespace: "a".into(), name: "b".into(), port: 443 };
        let first = all.get_or_create(&service);
        first.record_wait();
        let second = all.get_or_create(&service);
        second.record_refused();
        drop(first);
        all.sweep();
        assert_eq!(all.get_or_create(&service).read(), (1, 1));
        drop(second);
        all.sweep();
        assert!(all.all().is_empty() && all.by_service.lock().is_empty());
        assert_eq!(all.get_or_create(&service).read(), (0, 0));
    }
}
