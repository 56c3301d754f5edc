//! Stores flunders in memory, with a revision for each change and a history for watches.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;

use crate::flunder::Flunder;

/// Number of past events. A watch that starts before the oldest one gets 410.
const HISTORY: usize = 1024;
/// Maximum number of events that a watch may fall behind before it ends.
const LAG: usize = 256;

/// A watch event.
#[derive(Clone, Debug)]
pub struct Event {
    pub kind: &'static str,
    pub revision: u64,
    pub flunder: Flunder,
}

/// Reason why the store refuses a call.
#[derive(Debug)]
pub enum StoreError {
    NotFound(String),
    Exists(String),
    Conflict,
    Expired,
}

pub struct Store {
    state: Mutex<State>,
    events: broadcast::Sender<Event>,
}

#[derive(Default)]
struct State {
    revision: u64,
    flunders: BTreeMap<(String, String), Flunder>,
    history: VecDeque<Event>,
}

impl Default for Store {
    fn default() -> Self {
        let state = State { revision: 1, ..State::default() };
        Self { state: Mutex::new(state), events: broadcast::channel(LAG).0 }
    }
}

impl Store {
    pub fn get(&self, namespace: &str, name: &str) -> Result<Flunder, StoreError> {
        let found = self.lock().flunders.get(&(namespace.to_owned(), name.to_owned())).cloned();
        found.ok_or_else(|| StoreError::NotFound(name.to_owned()))
    }

    /// Returns the revision, and the flunders of one namespace, or all if it is empty.
    pub fn list(&self, namespace: &str) -> (u64, Vec<Flunder>) {
        let state = self.lock();
        let found =
            state.flunders.values().filter(|f| namespace.is_empty() || f.metadata.namespace == namespace);
        (state.revision, found.cloned().collect())
    }

    pub fn create(&self, flunder: Flunder) -> Result<Flunder, StoreError> {
        let mut state = self.lock();
        if state.flunders.contains_key(&key(&flunder)) {
            return Err(StoreError::Exists(flunder.metadata.name));
        }
        Ok(self.commit(&mut state, "ADDED", flunder))
    }

    /// Replaces an object by the result of `change`. Fails with a conflict if the result has a `resourceVersion` other
    /// than the current one.
    pub fn update<E: From<StoreError>>(
        &self,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&Flunder) -> Result<Flunder, E>,
    ) -> Result<Flunder, E> {
        let mut state = self.lock();
        let found = state.flunders.get(&(namespace.to_owned(), name.to_owned()));
        let old = found.ok_or_else(|| StoreError::NotFound(name.to_owned()))?;
        let new = change(old)?;
        let expected = &new.metadata.resource_version;
        if !expected.is_empty() && *expected != old.metadata.resource_version {
            return Err(StoreError::Conflict.into());
        }
        Ok(self.commit(&mut state, "MODIFIED", new))
    }

    pub fn delete(&self, namespace: &str, name: &str) -> Result<Flunder, StoreError> {
        let mut state = self.lock();
        let removed = state.flunders.remove(&(namespace.to_owned(), name.to_owned()));
        let removed = removed.ok_or_else(|| StoreError::NotFound(name.to_owned()))?;
        Ok(self.commit(&mut state, "DELETED", removed))
    }

    /// Returns past events after a revision, and a receiver for all later ones. With revision 0, the past events are
    /// `ADDED` events of all objects.
    pub fn watch(&self, after: u64) -> Result<(Vec<Event>, broadcast::Receiver<Event>), StoreError> {
        let state = self.lock();
        let past = if after == 0 {
            let added = |f: &Flunder| Event { kind: "ADDED", revision: state.revision, flunder: f.clone() };
            state.flunders.values().map(added).collect()
        } else {
            let oldest = state.history.front().map_or(state.revision, |event| event.revision - 1);
            if after < oldest {
                return Err(StoreError::Expired);
            }
            state.history.iter().filter(|event| event.revision > after).cloned().collect()
        };
        Ok((past, self.events.subscribe()))
    }

    fn commit(&self, state: &mut State, kind: &'static str, mut flunder: Flunder) -> Flunder {
        state.revision += 1;
        flunder.metadata.resource_version = state.revision.to_string();
        if kind != "DELETED" {
            state.flunders.insert(key(&flunder), flunder.clone());
        }
        let event = Event { kind, revision: state.revision, flunder: flunder.clone() };
        if state.history.len() == HISTORY {
            state.history.pop_front();
        }
        state.history.push_back(event.clone());
        // `send` fails if there are no watches.
        let _ = self.events.send(event);
        flunder
    }

    /// Ignores poisoning: only `commit` and `delete` change the state, and neither leaves a change half done.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(flunder: &Flunder) -> (String, String) {
    (flunder.metadata.namespace.clone(), flunder.metadata.name.clone())
}
