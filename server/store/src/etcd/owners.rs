//! Index of owner references: loaded once with a scan of all objects, then updated with each change. Contains only UIDs and keys
//! of objects with owners, whether their resources are cached or not.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::event::{Event, EventType};
use crate::key::Key;
use crate::record::Record;

/// Index of owner references.
#[derive(Default)]
pub(super) struct Owners {
    state: Mutex<State>,
    /// Locked during the scan, so that one caller scans and other callers wait.
    pub(super) reading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
enum State {
    /// No caller has used the index.
    #[default]
    Unread,
    /// The scan is running; contains the changes since its start.
    Reading(Vec<Arc<Event>>),
    Known(Known),
}

#[derive(Default)]
struct Known {
    dependents: HashMap<Box<str>, BTreeSet<Key>>,
    owners: HashMap<Key, Box<[Box<str>]>>,
}

impl Owners {
    /// Applies changes, in order.
    pub(super) fn apply(&self, events: &[Arc<Event>]) {
        match &mut *self.state.lock() {
            State::Unread => {}
            State::Reading(waiting) => waiting.extend(events.iter().cloned()),
            State::Known(known) => events.iter().for_each(|event| known.apply(event)),
        }
    }

    /// True if the index is loaded.
    pub(super) fn is_known(&self) -> bool {
        matches!(&*self.state.lock(), State::Known(_))
    }

    /// Starts the scan: later changes are buffered.
    pub(super) fn begin(&self) {
        *self.state.lock() = State::Reading(Vec::new());
    }

    /// Completes the scan with all objects that have owners, as of a revision at or after [`OwnerIndex::begin_load`].
    pub(super) fn end(&self, found: Vec<(Key, Box<[Box<str>]>)>, revision: i64) {
        let mut known = Known::default();
        found.into_iter().for_each(|(key, owners)| known.set(key, owners));
        let mut state = self.state.lock();
        if let State::Reading(waiting) = &*state {
            let since = waiting.iter().filter(|event| event.revision() > revision);
            since.for_each(|event| known.apply(event));
        }
        *state = State::Known(known);
    }

    pub(super) fn dependents(&self, owner: &str) -> Vec<Key> {
        match &*self.state.lock() {
            State::Known(known) => known.dependents.get(owner).into_iter().flatten().cloned().collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn all(&self) -> Vec<String> {
        match &*self.state.lock() {
            State::Known(known) => known.dependents.keys().map(|uid| uid.to_string()).collect(),
            _ => Vec::new(),
        }
    }
}

impl Known {
    fn apply(&mut self, event: &Event) {
        let Record { key, value, .. } = &*event.record;
        match event.event_type {
            EventType::Deleted => self.set(key.clone(), Box::default()),
            _ => self.set(key.clone(), value.owners().into()),
        }
    }

    fn set(&mut self, key: Key, owners: Box<[Box<str>]>) {
        let before = match owners.is_empty() {
            true => self.owners.remove(&key),
            false => self.owners.insert(key.clone(), owners.clone()),
        };
        for owner in before.iter().flatten() {
            if let Some(keys) = self.dependents.get_mut(owner) {
                keys.remove(&key);
                if keys.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
        for owner in owners {
            self.dependents.entry(owner).or_default().insert(key.clone());
        }
    }
}
