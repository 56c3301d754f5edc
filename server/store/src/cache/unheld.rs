//! Known facts about a resource that is not cached.

use std::time::Instant;

use super::counts::Counts;
use crate::event::{Event, EventType};
use crate::unreadable::Unreadable;

/// Unreadable objects that are remembered of one resource past the cache.
///
/// Limit (Storage and watches): further ones are found again at each read.
const UNREADABLE: usize = 1_000;

/// Known facts about a resource that is not cached.
#[derive(Default)]
pub(super) struct Unheld {
    /// Time of the next attempt to cache the resource, if it did not fit.
    pub(super) rests_until: Option<Instant>,
    /// True if the resource did not fit, or was evicted, since it was last cached.
    pub(super) was_turned_away: bool,
    pub(super) counts: Counts,
    /// Known unreadable objects of the resource.
    unreadable: Vec<Unreadable>,
}

impl Unheld {
    pub(super) fn unreadable(&self) -> &[Unreadable] {
        &self.unreadable
    }

    /// Adds unreadable objects. Returns the number of new ones.
    pub(super) fn note<'a>(&mut self, objects: impl IntoIterator<Item = &'a Unreadable>) -> usize {
        let before = self.unreadable.len();
        for object in objects {
            if self.unreadable.len() < UNREADABLE && !self.unreadable.contains(object) {
                self.unreadable.push(object.clone());
            }
        }
        self.unreadable.len() - before
    }

    /// Removes an unreadable object. Returns the number of removed ones.
    pub(super) fn forget(&mut self, path: &str) -> usize {
        let before = self.unreadable.len();
        self.unreadable.retain(|object| !object.has_key() || object.key().path() != path);
        before - self.unreadable.len()
    }

    /// Removes all unreadable objects. Returns their number.
    pub(super) fn forget_all(&mut self) -> usize {
        std::mem::take(&mut self.unreadable).len()
    }

    /// Applies a change. Returns the number of objects that are no longer unreadable, and the number of newly unreadable ones.
    pub(super) fn pass(&mut self, event: &Event) -> (usize, usize) {
        let more = match event.event_type {
            EventType::Added => 1,
            EventType::Modified => 0,
            EventType::Deleted => -1,
        };
        if more != 0 {
            self.counts.pass(event.record.key.namespace(), event.revision(), more);
        }
        let gone = self.forget(event.record.key.path());
        (gone, event.unreadable.as_deref().map_or(0, |object| self.note([object])))
    }
}
