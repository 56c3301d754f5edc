//! Slot of one resource: its objects if it is cached, otherwise the known facts about it.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use super::uncached::UncachedState;
use crate::event::Event;
use crate::key::Resource;
use crate::snapshot::{Objects, Snapshot};
use crate::unreadable::Unreadable;

/// Slot of one resource in the cache.
pub(crate) struct Slot {
    /// ID of the resource in the database.
    pub(crate) id: i64,
    /// True if the database contains the ID.
    pub(crate) is_stored: AtomicBool,
    pub(crate) resource: Resource,
    /// Locked during a load, so that one caller loads and other callers wait.
    loading: tokio::sync::Mutex<()>,
    /// Changes applied since the start of the load; `None` if no load is running.
    pub(super) buffered_events: Mutex<Option<Vec<Arc<Event>>>>,
    pub(super) state: ArcSwapOption<Loaded>,
    /// Weight of `state` in bytes.
    pub(super) bytes: AtomicI64,
    /// Revision of the last change while the resource is not cached.
    pub(super) changed: AtomicI64,
    pub(super) uncached: Mutex<UncachedState>,
    /// Objects whose keys cannot be read, once they were searched: no write creates or removes such objects.
    pub(crate) damaged_keys: OnceLock<Vec<Unreadable>>,
    /// True if the resource stays in the cache regardless of the budget.
    pub(super) is_pinned: AtomicBool,
    /// True if the resource was used since `used_at`.
    is_used: AtomicBool,
    used_at: Mutex<Instant>,
}

/// Cached objects of a resource.
#[derive(Clone)]
pub(super) struct Loaded {
    pub(super) objects: Arc<Objects>,
    /// First revision at which the objects are the current state.
    pub(super) unchanged_since: i64,
}

impl Slot {
    pub(super) fn new(id: i64, stored: bool, resource: Resource, changed: i64) -> Self {
        Self {
            id,
            is_stored: AtomicBool::new(stored),
            resource,
            loading: tokio::sync::Mutex::default(),
            buffered_events: Mutex::default(),
            state: ArcSwapOption::empty(),
            bytes: AtomicI64::new(0),
            changed: AtomicI64::new(changed),
            uncached: Mutex::default(),
            damaged_keys: OnceLock::new(),
            is_pinned: AtomicBool::new(false),
            is_used: AtomicBool::new(false),
            used_at: Mutex::new(Instant::now()),
        }
    }

    /// True if the database may contain objects of the resource.
    pub(crate) fn may_be_stored(&self) -> bool {
        self.is_stored.load(Ordering::Acquire)
    }

    /// True if no load is needed: the resource is cached, or did not fit a short time ago.
    pub(crate) fn is_load_unneeded(&self) -> bool {
        if self.state.load().is_some() {
            self.note_use();
            return true;
        }
        let retry_after = self.uncached.lock().retry_after;
        retry_after.is_some_and(|retry_after| Instant::now() < retry_after)
            && !self.is_pinned.load(Ordering::Relaxed)
    }

    /// Waits for the lock of loads. Returns `None` if a load is running and the resource was rejected before: callers read it
    /// from the database until that load succeeds.
    pub(crate) async fn lock_for_load(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        match self.loading.try_lock() {
            Ok(guard) => Some(guard),
            Err(_) if self.uncached.lock().cache_rejected => None,
            Err(_) => Some(self.loading.lock().await),
        }
    }

    /// Returns the current state if it is cached. `current` is the revision of the store, read before this call.
    pub(crate) fn snapshot(&self, current: i64) -> Option<Snapshot> {
        let loaded = self.state.load();
        let loaded = loaded.as_ref()?;
        self.note_use();
        Some(Snapshot::new(self.resource.clone(), loaded.objects.clone(), loaded.unchanged_since, current))
    }

    /// Returns the objects if they are cached. Does not count as a use.
    pub(crate) fn objects(&self) -> Option<Arc<Objects>> {
        self.state.load().as_ref().map(|loaded| loaded.objects.clone())
    }

    /// Returns the current number of objects, if known.
    pub(crate) fn count(&self) -> Option<u64> {
        let count = match self.objects() {
            Some(objects) => Some(objects.count()),
            None if !self.may_be_stored() => Some(0),
            None => self.uncached.lock().counts.current("").and_then(|count| usize::try_from(count).ok()),
        };
        count.map(|count| count as u64)
    }

    /// Returns the number of objects after a key at a revision, or of all objects, in a namespace (empty for all), if known.
    pub(crate) fn count_after(&self, namespace: &str, revision: i64, after: Option<&str>) -> Option<i64> {
        let uncached = self.uncached.lock();
        match after {
            Some(after) => uncached.counts.count_after(namespace, revision, after),
            None => uncached.counts.total(namespace, revision),
        }
    }

    /// Records that a page ended with this key.
    pub(crate) fn record_page_end(&self, namespace: &str, revision: i64, after: &str, remaining: i64) {
        self.uncached.lock().counts.record_page_end(namespace, revision, after, remaining);
    }

    // Many readers call this: write only if needed.
    fn note_use(&self) {
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the time of the last use. Uses since the previous call count as a use at `now`.
    pub(super) fn used_at(&self, now: Instant) -> Instant {
        let mut used_at = self.used_at.lock();
        if self.is_used.swap(false, Ordering::Relaxed) {
            *used_at = now;
        }
        *used_at
    }
}
