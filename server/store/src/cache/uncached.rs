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
pub(super) struct UncachedState {
    /// Time of the next attempt to cache the resource, if it did not fit.
    pub(super) retry_after: Option<Instant>,
    /// True if the resource did not fit, or was evicted, since it was last cached.
    pub(super) cache_rejected: bool,
    pub(super) counts: Counts,
    /// Known unreadable objects of the resource.
    unreadable: Vec<Unreadable>,
}

impl UncachedState {
    pub(super) fn unreadable(&self) -> &[Unreadable] {
        &self.unreadable
    }

    /// Adds unreadable objects. Returns the number of new ones.
    pub(super) fn note<'a>(&mut self, objects: impl IntoIterator<Item = &'a Unreadable>) -> usize {
        let previous_count = self.unreadable.len();
        for object in objects {
            if self.unreadable.len() < UNREADABLE && !self.unreadable.contains(object) {
                self.unreadable.push(object.clone());
            }
        }
        self.unreadable.len() - previous_count
    }

    /// Removes an unreadable object. Returns the number of removed ones.
    pub(super) fn forget(&mut self, path: &str) -> usize {
        let previous_count = self.unreadable.len();
        self.unreadable.retain(|object| !object.has_key() || object.key().path() != path);
        previous_count - self.unreadable.len()
    }

    /// Removes all unreadable objects. Returns their number.
    pub(super) fn forget_all(&mut self) -> usize {
        std::mem::take(&mut self.unreadable).len()
    }

    /// Applies a change. Returns the number of objects that are no longer unreadable, and the number of newly unreadable ones.
    pub(super) fn apply(&mut self, event: &Event) -> (usize, usize) {
        let difference = match event.event_type {
            EventType::Added => 1,
            EventType::Modified => 0,
            EventType::Deleted => -1,
        };
        if difference != 0 {
            self.counts.apply(event.record.key.namespace(), event.revision(), difference);
        }
        let removed = self.forget(event.record.key.path());
        (removed, event.unreadable.as_deref().map_or(0, |object| self.note([object])))
    }
}
