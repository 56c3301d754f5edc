//! One resource: its objects where they are in memory, and what is known of it where they are not.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use super::unheld::Unheld;
use crate::event::Event;
use crate::key::Resource;
use crate::snapshot::{Objects, Snapshot};
use crate::unreadable::Unreadable;

/// See the module.
pub(crate) struct Slot {
    /// Its number in the database.
    pub(crate) id: i64,
    /// Whether the database knows the number.
    pub(crate) stored: AtomicBool,
    pub(crate) resource: Resource,
    /// Held while loading, so that one caller loads and the others wait.
    loading: tokio::sync::Mutex<()>,
    /// What was applied since the load began; nothing at other times.
    pub(super) arrived: Mutex<Option<Vec<Arc<Event>>>>,
    pub(super) state: ArcSwapOption<Loaded>,
    /// What `state` weighs.
    pub(super) bytes: AtomicI64,
    /// While it is not in memory: the revision of its last change.
    pub(super) changed: AtomicI64,
    pub(super) unheld: Mutex<Unheld>,
    /// Its objects whose keys cannot be read, once they were looked for: no write makes or removes such.
    pub(crate) damaged_keys: OnceLock<Vec<Unreadable>>,
    /// Whether it stays in memory whatever the budget is.
    pub(super) is_kept: AtomicBool,
    /// Whether it was used since `used_at`.
    is_used: AtomicBool,
    used_at: Mutex<Instant>,
}

/// A resource in memory.
#[derive(Clone)]
pub(super) struct Loaded {
    pub(super) objects: Arc<Objects>,
    /// The objects are the state at every revision from here to the current one.
    pub(super) changed: i64,
}

impl Slot {
    pub(super) fn new(id: i64, stored: bool, resource: Resource, changed: i64) -> Self {
        Self {
            id,
            stored: AtomicBool::new(stored),
            resource,
            loading: tokio::sync::Mutex::default(),
            arrived: Mutex::default(),
            state: ArcSwapOption::empty(),
            bytes: AtomicI64::new(0),
            changed: AtomicI64::new(changed),
            unheld: Mutex::default(),
            damaged_keys: OnceLock::new(),
            is_kept: AtomicBool::new(false),
            is_used: AtomicBool::new(false),
            used_at: Mutex::new(Instant::now()),
        }
    }

    /// Whether the database may have objects of it.
    pub(crate) fn may_be_stored(&self) -> bool {
        self.stored.load(Ordering::Acquire)
    }

    /// Whether nothing is to be loaded: it is in memory, or found no room there a moment ago.
    pub(crate) fn is_settled(&self) -> bool {
        if self.state.load().is_some() {
            self.note_use();
            return true;
        }
        let until = self.unheld.lock().rests_until;
        until.is_some_and(|until| Instant::now() < until) && !self.is_kept.load(Ordering::Relaxed)
    }

    /// One caller loads, the others wait; none for those who need not: it found no room before, and is read from the database until
    /// the one who looks for it again has found some.
    pub(crate) async fn turn_to_load(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        match self.loading.try_lock() {
            Ok(turn) => Some(turn),
            Err(_) if self.unheld.lock().was_turned_away => None,
            Err(_) => Some(self.loading.lock().await),
        }
    }

    /// The current state, if it is in memory. `current` is the store's revision, read before this call.
    pub(crate) fn snapshot(&self, current: i64) -> Option<Snapshot> {
        let loaded = self.state.load();
        let loaded = loaded.as_ref()?;
        self.note_use();
        Some(Snapshot::new(self.resource.clone(), loaded.objects.clone(), loaded.changed, current))
    }

    /// Its objects, if they are in memory. Not a use of them.
    pub(crate) fn objects(&self) -> Option<Arc<Objects>> {
        self.state.load().as_ref().map(|loaded| loaded.objects.clone())
    }

    /// How many objects it has now, if that is known.
    pub(crate) fn count(&self) -> Option<u64> {
        let count = match self.objects() {
            Some(objects) => Some(objects.count()),
            None if !self.may_be_stored() => Some(0),
            None => self.unheld.lock().counts.newest("").and_then(|count| usize::try_from(count).ok()),
        };
        count.map(|count| count as u64)
    }

    /// How many objects follow a key of a namespace (empty: of all), or all of them, at a revision, if that is known.
    pub(crate) fn following(&self, namespace: &str, revision: i64, after: Option<&str>) -> Option<i64> {
        let unheld = self.unheld.lock();
        match after {
            Some(after) => unheld.counts.following(namespace, revision, after),
            None => unheld.counts.total(namespace, revision),
        }
    }

    /// A page ended with this key.
    pub(crate) fn page_ended(&self, namespace: &str, revision: i64, after: &str, remaining: i64) {
        self.unheld.lock().counts.page_ended(namespace, revision, after, remaining);
    }

    /// Written only where it has to be: many read at the same time.
    fn note_use(&self) {
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
    }

    /// When it was used last; what was used since this was asked before counts as now.
    pub(super) fn used_at(&self, now: Instant) -> Instant {
        let mut used_at = self.used_at.lock();
        if self.is_used.swap(false, Ordering::Relaxed) {
            *used_at = now;
        }
        *used_at
    }
}
