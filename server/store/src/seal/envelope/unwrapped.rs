//! The keys that a service has unwrapped, and those that it has refused lately. Both are bounded.

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
/// Refusals that are remembered.
const MAX_REFUSALS: usize = 1_000;

/// See the module.
#[derive(Default)]
pub(super) struct UnwrappedKeys {
    keys: Mutex<HashMap<Fingerprint, Kept>>,
    /// Held while the service is asked.
    pub(super) asking: tokio::sync::Mutex<Refusals>,
}

struct Kept {
    key: Arc<DataKey>,
    used: Instant,
}

impl UnwrappedKeys {
    pub(super) fn find(&self, fingerprint: &Fingerprint) -> Option<Arc<DataKey>> {
        let mut keys = self.keys.lock();
        let kept = keys.get_mut(fingerprint)?;
        kept.used = Instant::now();
        Some(Arc::clone(&kept.key))
    }

    /// Keeps a key, and returns how many are kept; the one that was not used for longest makes room.
    pub(super) fn keep(&self, fingerprint: Fingerprint, key: Arc<DataKey>) -> (Arc<DataKey>, usize) {
        let mut keys = self.keys.lock();
        if keys.len() >= MAX_KEYS && !keys.contains_key(&fingerprint) {
            let oldest = keys.iter().min_by_key(|(_, kept)| kept.used).map(|(oldest, _)| *oldest);
            oldest.and_then(|oldest| keys.remove(&oldest));
        }
        keys.insert(fingerprint, Kept { key: Arc::clone(&key), used: Instant::now() });
        (key, keys.len())
    }
}

/// Keys that could not be unwrapped, so that a list of many values asks once.
#[derive(Default)]
pub(super) struct Refusals {
    last: HashMap<Fingerprint, (Instant, SealError)>,
}

impl Refusals {
    pub(super) fn failed_lately(&self, fingerprint: &Fingerprint, within: Duration) -> Option<SealError> {
        let (at, error) = self.last.get(fingerprint)?;
        (at.elapsed() < within).then(|| error.clone())
    }

    pub(super) fn failed(&mut self, fingerprint: Fingerprint, error: SealError) {
        if self.last.len() >= MAX_REFUSALS {
            self.last.clear();
        }
        self.last.insert(fingerprint, (Instant::now(), error));
    }
}
