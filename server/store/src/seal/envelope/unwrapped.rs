//! Bounded caches of unwrapped keys and of recently refused keys.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::super::error::SealError;
use super::super::object::Fingerprint;
use super::data_key::DataKey;

/// Unwrapped data encryption keys in memory.
///
/// About one for each key id and each start of a server since the last migration. kube-apiserver has no limit.
///
/// Limit (Storage and watches): the key service is called again.
const MAX_KEYS: usize = 10_000;
/// Maximum number of cached refusals.
const MAX_REFUSALS: usize = 1_000;

/// Cache of unwrapped keys and of recent refusals.
#[derive(Default)]
pub(super) struct UnwrappedKeys {
    keys: Mutex<HashMap<Fingerprint, CachedKey>>,
    /// Locked during a call of the service.
    pub(super) refusals: tokio::sync::Mutex<Refusals>,
}

struct CachedKey {
    key: Arc<DataKey>,
    used_at: Instant,
}

impl UnwrappedKeys {
    pub(super) fn find(&self, fingerprint: &Fingerprint) -> Option<Arc<DataKey>> {
        let mut keys = self.keys.lock();
        let cached = keys.get_mut(fingerprint)?;
        cached.used_at = Instant::now();
        Some(Arc::clone(&cached.key))
    }

    /// Caches a key, evicting the least recently used one if needed. Returns the key and the number of cached keys.
    pub(super) fn insert(&self, fingerprint: Fingerprint, key: Arc<DataKey>) -> (Arc<DataKey>, usize) {
        let mut keys = self.keys.lock();
        if keys.len() >= MAX_KEYS && !keys.contains_key(&fingerprint) {
            let oldest = keys.iter().min_by_key(|(_, cached)| cached.used_at).map(|(oldest, _)| *oldest);
            oldest.and_then(|oldest| keys.remove(&oldest));
        }
        keys.insert(fingerprint, CachedKey { key: Arc::clone(&key), used_at: Instant::now() });
        (key, keys.len())
    }
}

/// Keys that could not be unwrapped, so that a list of many values calls the service once.
#[derive(Default)]
pub(super) struct Refusals {
    last: HashMap<Fingerprint, (Instant, SealError)>,
}

impl Refusals {
    pub(super) fn recent_failure(&self, fingerprint: &Fingerprint, ttl: Duration) -> Option<SealError> {
        let (failed_at, error) = self.last.get(fingerprint)?;
        (failed_at.elapsed() < ttl).then(|| error.clone())
    }

    pub(super) fn insert(&mut self, fingerprint: Fingerprint, error: SealError) {
        if self.last.len() >= MAX_REFUSALS {
            self.last.clear();
        }
        self.last.insert(fingerprint, (Instant::now(), error));
    }
}
