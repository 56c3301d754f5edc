//! Flunders in memory, with one revision for every change and a history for watches.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;

use crate::flunder::Flunder;

/// Changes that a watch may catch up on; an older start is answered with 410.
const HISTORY: usize = 1024;
/// A watcher that is further behind is cut off, and starts again with a list.
const LAG: usize = 256;

/// A change, as watches see it.
#[derive(Clone, Debug)]
pub struct Event {
    pub kind: &'static str,
    pub revision: u64,
    pub flunder: Flunder,
}

/// Why a change was refused.
#[derive(Debug)]
pub enum Refused {
    NotFound(String),
    Exists(String),
    Conflict,
    Expired,
}

pub struct Store {
    inner: Mutex<Inner>,
    events: broadcast::Sender<Event>,
}

#[derive(Default)]
struct Inner {
    revision: u64,
    flunders: BTreeMap<(String, String), Flunder>,
    history: VecDeque<Event>,
}

impl Default for Store {
    fn default() -> Self {
        let inner = Inner { revision: 1, ..Inner::default() };
        Self { inner: Mutex::new(inner), events: broadcast::channel(LAG).0 }
    }
}

impl Store {
    pub fn get(&self, namespace: &str, name: &str) -> Result<Flunder, Refused> {
        let found = self.lock().flunders.get(&(namespace.to_owned(), name.to_owned())).cloned();
        found.ok_or_else(|| Refused::NotFound(name.to_owned()))
    }

    /// All, or those of one namespace, at one revision.
    pub fn list(&self, namespace: &str) -> (u64, Vec<Flunder>) {
        let inner = self.lock();
        let found =
            inner.flunders.values().filter(|f| namespace.is_empty() || f.metadata.namespace == namespace);
        (inner.revision, found.cloned().collect())
    }

    pub fn create(&self, flunder: Flunder) -> Result<Flunder, Refused> {
        let mut inner = self.lock();
        if inner.flunders.contains_key(&key(&flunder)) {
            return Err(Refused::Exists(flunder.metadata.name));
        }
        Ok(self.commit(&mut inner, "ADDED", flunder))
    }

    /// Replaces what `change` makes of the present state. Its outcome is checked against the revision in it.
    pub fn update<E: From<Refused>>(
        &self,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&Flunder) -> Result<Flunder, E>,
    ) -> Result<Flunder, E> {
        let mut inner = self.lock();
        let found = inner.flunders.get(&(namespace.to_owned(), name.to_owned()));
        let old = found.ok_or_else(|| Refused::NotFound(name.to_owned()))?;
        let new = change(old)?;
        let expected = &new.metadata.resource_version;
        if !expected.is_empty() && *expected != old.metadata.resource_version {
            return Err(Refused::Conflict.into());
        }
        Ok(self.commit(&mut inner, "MODIFIED", new))
    }

    pub fn delete(&self, namespace: &str, name: &str) -> Result<Flunder, Refused> {
        let mut inner = self.lock();
        let removed = inner.flunders.remove(&(namespace.to_owned(), name.to_owned()));
        let removed = removed.ok_or_else(|| Refused::NotFound(name.to_owned()))?;
        Ok(self.commit(&mut inner, "DELETED", removed))
    }

    /// Changes after a revision that are history already, and those to come: no gap, none twice. From revision 0:
    /// everything there is, as added.
    pub fn watch(&self, after: u64) -> Result<(Vec<Event>, broadcast::Receiver<Event>), Refused> {
        let inner = self.lock();
        let past = if after == 0 {
            let added = |f: &Flunder| Event { kind: "ADDED", revision: inner.revision, flunder: f.clone() };
            inner.flunders.values().map(added).collect()
        } else {
            let oldest = inner.history.front().map_or(inner.revision, |event| event.revision - 1);
            if after < oldest {
                return Err(Refused::Expired);
            }
            inner.history.iter().filter(|event| event.revision > after).cloned().collect()
        };
        Ok((past, self.events.subscribe()))
    }

    fn commit(&self, inner: &mut Inner, kind: &'static str, mut flunder: Flunder) -> Flunder {
        inner.revision += 1;
        flunder.metadata.resource_version = inner.revision.to_string();
        if kind != "DELETED" {
            inner.flunders.insert(key(&flunder), flunder.clone());
        }
        let event = Event { kind, revision: inner.revision, flunder: flunder.clone() };
        if inner.history.len() == HISTORY {
            inner.history.pop_front();
        }
        inner.history.push_back(event.clone());
        // Nobody watching is no error.
        let _ = self.events.send(event);
        flunder
    }

    /// Each change is complete before the lock is let go, so a panic elsewhere leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(flunder: &Flunder) -> (String, String) {
    (flunder.metadata.namespace.clone(), flunder.metadata.name.clone())
}
