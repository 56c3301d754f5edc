//! Makes room: what has not been used for longest leaves memory first, and what found no room waits before it looks again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::Cache;
use super::slot::Slot;

impl Cache {
    /// The most bytes that are worth loading of a resource; none when it is not asked how large it is.
    pub(crate) fn most(&self, slot: &Slot) -> Option<i64> {
        if !self.budget.is_bounded() || slot.is_kept.load(Ordering::Relaxed) {
            return None;
        }
        Some(self.budget.most(slot.unheld.lock().was_turned_away))
    }

    /// Makes room for a resource of about so many bytes, out of what others have not used for a while; whether there is.
    pub(crate) fn make_room(&self, slot: &Slot, bytes: i64) -> bool {
        if self.most(slot).is_none_or(|most| bytes <= most && self.evict_idle(bytes)) {
            return true;
        }
        self.leave(slot, bytes);
        false
    }

    /// A resource finds no room, at about so many bytes: for a while it is read from the database.
    pub(crate) fn leave(&self, slot: &Slot, bytes: i64) {
        let mut unheld = slot.unheld.lock();
        if !unheld.was_turned_away {
            tracing::info!(
                resource = %slot.resource,
                bytes,
                "cache is full, reading a resource from the database"
            );
        }
        unheld.was_turned_away = true;
        unheld.rests_until = Some(Instant::now() + self.budget.rest);
    }

    /// Drops what has rested, the longest first, until so many bytes more fit; whether they do.
    fn evict_idle(&self, bytes: i64) -> bool {
        let _nothing_is_applied = self.applied.lock();
        let now = Instant::now();
        for (used_at, slot) in self.evictable(now) {
            if !self.budget.lacks(bytes) || now.duration_since(used_at) < self.budget.rest {
                break;
            }
            self.evict(&slot);
        }
        !self.budget.lacks(bytes)
    }

    /// Drops what was not used for longest until no more is held than may be: writes have made it more. Called while nothing is
    /// applied.
    pub(super) fn shrink(&self) {
        for (_, slot) in self.evictable(Instant::now()) {
            if !self.budget.is_over() {
                break;
            }
            let bytes = slot.bytes.load(Ordering::Relaxed);
            self.evict(&slot);
            self.leave(&slot, bytes);
        }
    }

    /// What is in memory and may leave it, the longest unused first.
    fn evictable(&self, now: Instant) -> Vec<(Instant, Arc<Slot>)> {
        let may_leave = |slot: &Arc<Slot>| {
            !slot.is_kept.load(Ordering::Relaxed) && slot.bytes.load(Ordering::Relaxed) > 0
        };
        let mut slots: Vec<_> =
            self.slots().into_iter().filter(may_leave).map(|slot| (slot.used_at(now), slot)).collect();
        slots.sort_by_key(|(used_at, _)| *used_at);
        slots
    }

    /// Called while nothing is applied.
    fn evict(&self, slot: &Slot) {
        let Some(loaded) = slot.state.swap(None) else { return };
        slot.changed.store(loaded.changed, Ordering::Release);
        self.budget.add(-slot.bytes.swap(0, Ordering::Relaxed));
        self.budget.evictions.inc();
        // They are still known, and still counted, as far as they are remembered.
        let known = loaded.objects.unreadable().count();
        let remembered = slot.unheld.lock().note(loaded.objects.unreadable());
        self.unreadable.fetch_sub(known - remembered.min(known), Ordering::Relaxed);
    }
}
