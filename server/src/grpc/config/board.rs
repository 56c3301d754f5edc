//! The board: every config entry that is no route (served group versions, checks, settings), under one lock-free
//! snapshot. Streams compare the snapshot that they have sent with the newest; there is nothing to fall behind of.

use std::collections::BTreeMap;
use std::sync::Arc;

use portico_proto::convert::{Entry, Payload, PayloadKind};
use tokio::sync::watch;

type Key = (PayloadKind, String);

/// What stands on the board at one moment.
#[derive(Clone, Default)]
pub(crate) struct Posted {
    entries: BTreeMap<Key, Arc<Payload>>,
}

/// Where other rooms post. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Board {
    newest: watch::Sender<Arc<Posted>>,
}

impl Board {
    pub(crate) fn new() -> Self {
        Self { newest: watch::Sender::new(Arc::default()) }
    }

    /// Posts, replaces or (without a payload) takes down entries together. What is the same stays the same.
    pub(crate) fn post(&self, changes: impl IntoIterator<Item = (PayloadKind, String, Option<Payload>)>) {
        let changes: Vec<_> = changes.into_iter().collect();
        self.newest.send_if_modified(|newest| {
            let mut next = Posted::clone(newest);
            let mut modified = false;
            for (kind, key, payload) in changes {
                modified |= next.change((kind, key), payload);
            }
            if modified {
                *newest = Arc::new(next);
            }
            modified
        });
    }

    /// A reader that has seen nothing.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<Posted>> {
        self.newest.subscribe()
    }
}

impl Posted {
    fn change(&mut self, key: Key, payload: Option<Payload>) -> bool {
        match payload {
            Some(payload) if self.entries.get(&key).is_some_and(|old| **old == payload) => false,
            Some(payload) => {
                self.entries.insert(key, Arc::new(payload));
                true
            }
            None => self.entries.remove(&key).is_some(),
        }
    }

    /// What changed since an older snapshot, as entries at this revision.
    pub(crate) fn since(&self, old: &Self, revision: i64) -> Vec<Entry> {
        let entry = |(kind, key): &Key, payload: Option<Payload>| Entry {
            kind: *kind,
            key: key.clone(),
            revision,
            payload,
        };
        let new = self.entries.iter().filter(|(key, payload)| {
            !old.entries.get(*key).is_some_and(|before| Arc::ptr_eq(before, payload))
        });
        let gone = old.entries.keys().filter(|key| !self.entries.contains_key(*key));
        new.map(|(key, payload)| entry(key, Some(Payload::clone(payload))))
            .chain(gone.map(|key| entry(key, None)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(value: &str) -> Option<Payload> {
        Some(Payload::Setting(value.to_owned()))
    }

    #[test]
    fn a_reader_hears_what_changed_and_nothing_twice() {
        let board = Board::new();
        let mut reader = board.subscribe();
        let post = |key: &str, value| board.post([(PayloadKind::Setting, key.to_owned(), value)]);
        post("a", setting("1"));
        post("b", setting("1"));
        let first = reader.borrow_and_update().clone();
        assert_eq!(first.since(&Posted::default(), 5).len(), 2);
        post("a", setting("1"));
        assert!(!reader.has_changed().unwrap());
        post("a", setting("2"));
        post("b", None);
        let changes = reader.borrow_and_update().since(&first, 6);
        let told: Vec<_> = changes.iter().map(|e| (e.key.as_str(), e.payload.is_some())).collect();
        assert_eq!(told, [("a", true), ("b", false)]);
    }
}
