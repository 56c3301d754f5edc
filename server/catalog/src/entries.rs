//! The entries as readers get them: everything once, then what changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portico_machinery::discovery::Served;
use tokio::sync::watch;

use crate::documents::Documents;

type All = Arc<BTreeMap<String, Arc<Served>>>;

/// The current entries. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Entries {
    newest: watch::Sender<All>,
    documents: Documents,
}

impl Entries {
    pub fn new(documents: Documents) -> Self {
        Self { newest: watch::Sender::new(All::default()), documents }
    }

    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Sets or (with nothing) removes entries together. What is the same stays the same.
    pub fn set(&self, changes: impl IntoIterator<Item = (String, Option<Served>)>) {
        let mut before: Vec<Arc<Served>> = Vec::new();
        self.newest.send_if_modified(|all| {
            let mut modified = false;
            for (key, served) in changes {
                let old = all.get(&key).cloned();
                if old.as_deref() == served.as_ref() {
                    continue;
                }
                modified = true;
                let all = Arc::make_mut(all);
                match served {
                    Some(served) => all.insert(key, Arc::new(served)),
                    None => all.remove(&key),
                };
                before.extend(old);
            }
            modified
        });
        if !before.is_empty() {
            let all = self.newest.borrow().clone();
            let named: BTreeSet<&str> = all.values().flat_map(|s| s.documents()).collect();
            self.documents.retire(before.iter().flat_map(|s| s.documents()), &named);
        }
    }

    pub fn reader(&self) -> ServedReader {
        ServedReader { newest: self.newest.subscribe(), seen: All::default(), first: true }
    }

    #[cfg(test)]
    pub fn all(&self) -> All {
        self.newest.borrow().clone()
    }
}

/// A reader of entries. It holds no queue: being slow costs it a larger difference.
#[derive(Debug)]
pub struct ServedReader {
    newest: watch::Receiver<All>,
    seen: All,
    first: bool,
}

impl ServedReader {
    /// What changed since the last call, by key; all entries at first, even if there are none. Waits until there is
    /// something. Cancel safe.
    pub async fn changes(&mut self) -> Vec<(String, Option<Arc<Served>>)> {
        if !self.first && self.newest.changed().await.is_err() {
            // The sender lives as long as the catalogue; without it nothing changes any more.
            std::future::pending::<()>().await;
        }
        self.first = false;
        let newest = self.newest.borrow_and_update().clone();
        let changed = newest
            .iter()
            .filter(|(key, served)| !self.seen.get(*key).is_some_and(|old| Arc::ptr_eq(old, served)));
        let gone = self.seen.keys().filter(|key| !newest.contains_key(*key));
        let changes = changed
            .map(|(key, served)| (key.clone(), Some(served.clone())))
            .chain(gone.map(|key| (key.clone(), None)))
            .collect();
        self.seen = newest;
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reader_hears_everything_once_and_then_the_differences() {
        let entries = Entries::new(Documents::default());
        let served = |hash: &str| Some(Served { discovery: hash.to_owned(), ..Served::default() });
        entries.set([("a".to_owned(), served("1")), ("b".to_owned(), served("1"))]);
        let mut reader = entries.reader();
        assert_eq!(reader.changes().await.len(), 2);
        entries.set([("a".to_owned(), served("1"))]);
        assert!(!reader.newest.has_changed().unwrap());
        entries.set([("a".to_owned(), served("2")), ("b".to_owned(), None)]);
        let told: Vec<_> = reader.changes().await.into_iter().map(|(k, s)| (k, s.is_some())).collect();
        assert_eq!(told, [("a".to_owned(), true), ("b".to_owned(), false)]);
    }
}
