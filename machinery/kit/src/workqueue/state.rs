//! State of a queue, without locks, waiting or metrics.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use tokio::time::Instant;

use super::key::WorkKey;

pub(super) struct QueueState<K> {
    queue: VecDeque<(K, Instant)>,
    /// Keys that need processing: all of `queue`, and keys that were added again while being processed.
    dirty: HashSet<K>,
    /// Keys that are being processed, with the start time.
    processing: HashMap<K, Instant>,
    delayed: BTreeMap<(Instant, u64), K>,
    delayed_keys: HashMap<K, (Instant, u64)>,
    sequence: u64,
    closed: bool,
}

impl<K: WorkKey> QueueState<K> {
    pub(super) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            dirty: HashSet::new(),
            processing: HashMap::new(),
            delayed: BTreeMap::new(),
            delayed_keys: HashMap::new(),
            sequence: 0,
            closed: false,
        }
    }

    /// Adds a key. Returns true if it was not waiting already.
    pub(super) fn add(&mut self, key: K, now: Instant) -> bool {
        if self.closed || self.dirty.contains(&key) {
            return false;
        }
        if !self.processing.contains_key(&key) {
            self.queue.push_back((key.clone(), now));
        }
        self.dirty.insert(key)
    }

    pub(super) fn add_at(&mut self, key: K, at: Instant) {
        if self.closed {
            return;
        }
        if let Some(earlier) = self.delayed_keys.get(&key).copied() {
            if earlier.0 <= at {
                return;
            }
            self.delayed.remove(&earlier);
        }
        self.sequence += 1;
        let slot = (at, self.sequence);
        self.delayed.insert(slot, key.clone());
        self.delayed_keys.insert(key, slot);
    }

    /// Moves delayed keys whose time has come to the queue, and returns the number of added keys.
    pub(super) fn promote(&mut self, now: Instant) -> usize {
        let mut added = 0;
        while let Some(entry) = self.delayed.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            self.delayed_keys.remove(&key);
            added += usize::from(self.add(key, now));
        }
        added
    }

    pub(super) fn pop(&mut self, now: Instant) -> Option<(K, Instant)> {
        let (key, since) = self.queue.pop_front()?;
        self.dirty.remove(&key);
        self.processing.insert(key.clone(), now);
        Some((key, since))
    }

    /// Ends the processing of a key. Returns true if the key must be processed again.
    pub(super) fn done(&mut self, key: &K, now: Instant) -> bool {
        self.processing.remove(key);
        let again = self.dirty.contains(key);
        if again {
            self.queue.push_back((key.clone(), now));
        }
        again
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.delayed.clear();
        self.delayed_keys.clear();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.delayed.first_key_value().map(|(slot, _)| slot.0)
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns the start times of the keys that are being processed.
    pub(super) fn start_times(&self) -> impl Iterator<Item = Instant> {
        self.processing.values().copied()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.processing.is_empty() && self.delayed.is_empty()
    }
}
