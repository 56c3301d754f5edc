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
pub(super) struct OwnerIndex {
    state: Mutex<IndexState>,
    /// Locked during the scan, so that one caller scans and other callers wait.
    pub(super) load_lock: tokio::sync::Mutex<()>,
}

#[derive(Default)]
enum IndexState {
    /// No caller has used the index.
    #[default]
    NotLoaded,
    /// The scan is running; contains the changes since its start.
    Loading(Vec<Arc<Event>>),
    Loaded(OwnerMaps),
}

#[derive(Default)]
struct OwnerMaps {
    dependents: HashMap<Box<str>, BTreeSet<Key>>,
    owners: HashMap<Key, Box<[Box<str>]>>,
}

impl OwnerIndex {
    /// Applies changes, in order.
    pub(super) fn apply(&self, events: &[Arc<Event>]) {
        match &mut *self.state.lock() {
            IndexState::NotLoaded => {}
            IndexState::Loading(waiting) => waiting.extend(events.iter().cloned()),
            IndexState::Loaded(known) => events.iter().for_each(|event| known.apply(event)),
        }
    }

    /// True if the index is loaded.
    pub(super) fn is_loaded(&self) -> bool {
        matches!(&*self.state.lock(), IndexState::Loaded(_))
    }

    /// Starts the scan: later changes are buffered.
    pub(super) fn begin_load(&self) {
        *self.state.lock() = IndexState::Loading(Vec::new());
    }

    /// Completes the scan with all objects that have owners, as of a revision at or after [`OwnerIndex::begin_load`].
    pub(super) fn finish_load(&self, found: Vec<(Key, Box<[Box<str>]>)>, revision: i64) {
        let mut maps = OwnerMaps::default();
        found.into_iter().for_each(|(key, owners)| maps.set(key, owners));
        let mut state = self.state.lock();
        if let IndexState::Loading(buffered) = &*state {
            let later = buffered.iter().filter(|event| event.revision() > revision);
            later.for_each(|event| maps.apply(event));
        }
        *state = IndexState::Loaded(maps);
    }

    pub(super) fn dependents(&self, owner: &str) -> Vec<Key> {
        match &*self.state.lock() {
            IndexState::Loaded(maps) => maps.dependents.get(owner).into_iter().flatten().cloned().collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn all(&self) -> Vec<String> {
        match &*self.state.lock() {
            IndexState::Loaded(maps) => maps.dependents.keys().map(|uid| uid.to_string()).collect(),
            _ => Vec::new(),
        }
    }
}

impl OwnerMaps {
    fn apply(&mut self, event: &Event) {
        let Record { key, value, .. } = &*event.record;
        match event.event_type {
            EventType::Deleted => self.set(key.clone(), Box::default()),
            _ => self.set(key.clone(), value.owners().into()),
        }
    }

    fn set(&mut self, key: Key, owners: Box<[Box<str>]>) {
        let previous = match owners.is_empty() {
            true => self.owners.remove(&key),
            false => self.owners.insert(key.clone(), owners.clone()),
        };
        for owner in previous.iter().flatten() {
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
