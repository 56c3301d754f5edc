//! What is known of a resource whose objects are not in memory.

use std::time::Instant;

use super::counts::Counts;
use crate::event::{Event, EventType};
use crate::unreadable::Unreadable;

/// Unreadable objects of one resource past the cache that are remembered.
///
/// Limit (Storage and watches): further ones are found again at each read.
const UNREADABLE: usize = 1_000;

/// See the module.
#[derive(Default)]
pub(super) struct Unheld {
    /// It found no room: until then nobody looks for any.
    pub(super) rests_until: Option<Instant>,
    /// Whether it found no room, or was dropped to make some, since it was in memory last.
    pub(super) was_turned_away: bool,
    pub(super) counts: Counts,
    /// Those of its objects that were met and cannot be read.
    unreadable: Vec<Unreadable>,
}

impl Unheld {
    pub(super) fn unreadable(&self) -> &[Unreadable] {
        &self.unreadable
    }

    /// Notes what cannot be read; how many that was not known of.
    pub(super) fn note<'a>(&mut self, objects: impl IntoIterator<Item = &'a Unreadable>) -> usize {
        let before = self.unreadable.len();
        for object in objects {
            if self.unreadable.len() < UNREADABLE && !self.unreadable.contains(object) {
                self.unreadable.push(object.clone());
            }
        }
        self.unreadable.len() - before
    }

    /// Forgets one that could not be read; how many there were.
    pub(super) fn forget(&mut self, path: &str) -> usize {
        let before = self.unreadable.len();
        self.unreadable.retain(|object| !object.has_key() || object.key().path() != path);
        before - self.unreadable.len()
    }

    /// Forgets all that could not be read; how many there were.
    pub(super) fn forget_all(&mut self) -> usize {
        std::mem::take(&mut self.unreadable).len()
    }

    /// Takes up a change: how many it makes readable or gone, and how many unreadable.
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
