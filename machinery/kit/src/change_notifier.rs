//! Keyed values that notify readers of the keys that changed since their last read.
//!
//! The cost of a change does not depend on the number of keys. A reader has a set of changed keys instead of a queue of
//! changes: a slow reader gets only the newest value of each key. Does not depend on the type of the values.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Map whose readers are notified of changed keys. Cheap to clone; clones share the state.
#[derive(Debug)]
pub struct ChangeNotifier<K, V> {
    state: Arc<Mutex<NotifierState<K, V>>>,
}

#[derive(Debug)]
struct NotifierState<K, V> {
    values: BTreeMap<K, Arc<V>>,
    readers: HashMap<u64, ReaderState<K>>,
    next_id: u64,
}

/// Keys that a reader has not read yet, and its notification.
#[derive(Debug)]
struct ReaderState<K> {
    unseen: BTreeSet<K>,
    wake: Arc<Notify>,
}

/// Previous and new value of a key that [`ChangeNotifier::set`] has changed.
pub type Replacement<V> = (Option<Arc<V>>, Option<Arc<V>>);

impl<K: Ord + Clone, V: PartialEq> ChangeNotifier<K, V> {
    /// Returns an empty map.
    #[must_use]
    pub fn new() -> Self {
        let state = NotifierState { values: BTreeMap::new(), readers: HashMap::new(), next_id: 0 };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Sets values, or removes those that are `None`, in one step: readers see all changes or none. Equal values do not count as
    /// changes. Returns the replaced values.
    pub fn set(&self, changes: impl IntoIterator<Item = (K, Option<Arc<V>>)>) -> Vec<Replacement<V>> {
        let mut state = self.state.lock();
        let NotifierState { values, readers, .. } = &mut *state;
        let mut replaced = Vec::new();
        for (key, after) in changes {
            let before = values.get(&key);
            if before == after.as_ref() {
                continue;
            }
            for reader in readers.values_mut() {
                reader.unseen.insert(key.clone());
            }
            let before = match after.clone() {
                Some(after) => values.insert(key, after),
                None => values.remove(&key),
            };
            replaced.push((before, after));
        }
        if !replaced.is_empty() {
            readers.values().for_each(|reader| reader.wake.notify_one());
        }
        replaced
    }

    /// Returns a reader for which all current values are unread.
    #[must_use]
    pub fn reader(&self) -> Reader<K, V> {
        let mut state = self.state.lock();
        let (id, wake) = (state.next_id, Arc::new(Notify::new()));
        state.next_id += 1;
        let unseen = state.values.keys().cloned().collect();
        state.readers.insert(id, ReaderState { unseen, wake: wake.clone() });
        Reader { notifier: Self { state: self.state.clone() }, id, wake }
    }
}

impl<K: Ord + Clone, V: PartialEq> Default for ChangeNotifier<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Clone for ChangeNotifier<K, V> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone() }
    }
}

/// Reader of changed keys. Dropping it removes it from the notifier.
#[derive(Debug)]
pub struct Reader<K, V> {
    notifier: ChangeNotifier<K, V>,
    id: u64,
    wake: Arc<Notify>,
}

impl<K: Ord + Clone, V> Reader<K, V> {
    /// Waits until a key is unread. Cancel safe.
    pub async fn changed(&self) {
        while self.notifier.state.lock().readers.get(&self.id).is_none_or(|reader| reader.unseen.is_empty()) {
            self.wake.notified().await;
        }
    }

    /// Returns the keys changed since the last read with their values; `None` for a removed key.
    pub fn take_changes(&mut self) -> Vec<(K, Option<Arc<V>>)> {
        let mut state = self.notifier.state.lock();
        let unseen = state.readers.get_mut(&self.id).map(|reader| std::mem::take(&mut reader.unseen));
        let value = |key: K| {
            let value = state.values.get(&key).cloned();
            (key, value)
        };
        unseen.unwrap_or_default().into_iter().map(value).collect()
    }

    /// Returns all values and marks every key as read.
    pub fn take_all(&mut self) -> Vec<(K, Arc<V>)> {
        let mut state = self.notifier.state.lock();
        if let Some(reader) = state.readers.get_mut(&self.id) {
            reader.unseen.clear();
        }
        state.values.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

impl<K, V> Drop for Reader<K, V> {
    fn drop(&mut self) {
        self.notifier.state.lock().readers.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain_values(changes: Vec<(&'static str, Option<Arc<i32>>)>) -> Vec<(&'static str, Option<i32>)> {
        changes.into_iter().map(|(key, value)| (key, value.map(|v| *v))).collect()
    }

    #[tokio::test]
    async fn a_reader_gets_the_newest_of_each_key_once() {
        let notifier = ChangeNotifier::new();
        notifier.set([("a", Some(Arc::new(1))), ("b", Some(Arc::new(1)))]);
        let mut reader = notifier.reader();
        reader.changed().await;
        assert_eq!(plain_values(reader.take_changes()), [("a", Some(1)), ("b", Some(1))]);
        notifier.set([("a", Some(Arc::new(2)))]);
        notifier.set([("a", Some(Arc::new(3))), ("b", None), ("c", None)]);
        reader.changed().await;
        assert_eq!(plain_values(reader.take_changes()), [("a", Some(3)), ("b", None)]);
        assert!(reader.take_changes().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn equal_values_wake_no_reader() {
        let notifier = ChangeNotifier::new();
        notifier.set([("a", Some(Arc::new(1)))]);
        let mut reader = notifier.reader();
        reader.take_changes();
        assert!(notifier.set([("a", Some(Arc::new(1))), ("b", None)]).is_empty());
        let woken = tokio::time::timeout(std::time::Duration::from_secs(1), reader.changed());
        assert!(woken.await.is_err());
    }

    #[test]
    fn set_returns_the_replaced_values() {
        let notifier = ChangeNotifier::new();
        notifier.set([("a", Some(Arc::new(1)))]);
        let replaced = notifier.set([("a", Some(Arc::new(2)))]);
        assert_eq!(replaced, [(Some(Arc::new(1)), Some(Arc::new(2)))]);
    }

    #[test]
    fn take_all_marks_every_key_as_read() {
        let notifier = ChangeNotifier::new();
        let mut reader = notifier.reader();
        notifier.set([("a", Some(Arc::new(1)))]);
        assert_eq!(reader.take_all().len(), 1);
        assert!(reader.take_changes().is_empty());
    }

    #[test]
    fn dropped_readers_are_removed() {
        let notifier: ChangeNotifier<&str, i32> = ChangeNotifier::new();
        drop(notifier.reader());
        assert!(notifier.state.lock().readers.is_empty());
    }
}
