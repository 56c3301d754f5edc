//! Eviction: the least recently used resources leave the cache first, and a resource that does not fit waits
//! before the next attempt.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::Cache;
use super::slot::Slot;

impl Cache {
    /// Returns the maximum bytes to load of a resource; `None` if its size does not matter.
    pub(crate) fn max_load_bytes(&self, slot: &Slot) -> Option<i64> {
        if !self.budget.is_bounded() || slot.is_pinned.load(Ordering::Relaxed) {
            return None;
        }
        Some(self.budget.max_resource_bytes(slot.uncached.lock().cache_rejected))
    }

    /// Makes room for a resource of approximately this size by evicting idle resources. Returns true if it fits.
    pub(crate) fn make_room(&self, slot: &Slot, bytes: i64) -> bool {
        if self.max_load_bytes(slot).is_none_or(|max_bytes| bytes <= max_bytes && self.evict_idle(bytes)) {
            return true;
        }
        self.reject(slot, bytes);
        false
    }

    /// Records that a resource of approximately this size does not fit: it is read from the database for some time.
    pub(crate) fn reject(&self, slot: &Slot, bytes: i64) {
        let mut uncached = slot.uncached.lock();
        if !uncached.cache_rejected {
            tracing::info!(
                resource = %slot.resource,
                bytes,
                "cache is full, reading a resource from the database"
            );
        }
        uncached.cache_rejected = true;
        uncached.retry_after = Some(Instant::now() + self.budget.idle_time);
    }

    /// Evicts idle resources, the least recently used first, until this many more bytes fit. Returns true if they do.
    fn evict_idle(&self, bytes: i64) -> bool {
        let _applied_guard = self.applied.lock();
        let now = Instant::now();
        for (used_at, slot) in self.evictable(now) {
            if !self.budget.exceeds(bytes) || now.duration_since(used_at) < self.budget.idle_time {
                break;
            }
            self.evict(&slot);
        }
        !self.budget.exceeds(bytes)
    }

    /// Evicts the least recently used resources until the cache is within its limit, which writes have exceeded. Called while
    /// the lock of `applied` is held.
    pub(super) fn shrink(&self) {
        for (_, slot) in self.evictable(Instant::now()) {
            if !self.budget.is_over() {
                break;
            }
            let bytes = slot.bytes.load(Ordering::Relaxed);
            self.evict(&slot);
            self.reject(&slot, bytes);
        }
    }

    /// Returns the cached resources that may be evicted, the least recently used first.
    fn evictable(&self, now: Instant) -> Vec<(Instant, Arc<Slot>)> {
        let is_evictable = |slot: &Arc<Slot>| {
            !slot.is_pinned.load(Ordering::Relaxed) && slot.bytes.load(Ordering::Relaxed) > 0
        };
        let mut slots: Vec<_> =
            self.slots().into_iter().filter(is_evictable).map(|slot| (slot.used_at(now), slot)).collect();
        slots.sort_by_key(|(used_at, _)| *used_at);
        slots
    }

    /// Evicts a resource. Called while the lock of `applied` is held.
    fn evict(&self, slot: &Slot) {
        let Some(loaded) = slot.state.swap(None) else { return };
        slot.changed.store(loaded.unchanged_since, Ordering::Release);
        self.budget.add(-slot.bytes.swap(0, Ordering::Relaxed));
        self.budget.evictions.inc();
        // Unreadable objects stay known and counted, up to the limit of stored ones.
        let count = loaded.objects.unreadable().count();
        let remembered = slot.uncached.lock().note(loaded.objects.unreadable());
        self.unreadable.fetch_sub(count - remembered.min(count), Ordering::Relaxed);
    }
}
