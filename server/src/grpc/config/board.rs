//! The board: all configuration entries except routes (served group versions, checks, settings, roles and bindings).

use std::sync::Arc;

use parking_lot::Mutex;
use portico_kit::change_notifier::{ChangeNotifier, Reader};
use portico_proto::convert::{Entry, Payload, PayloadKind};

/// Kind and key of an entry.
pub(crate) type Key = (PayloadKind, String);

/// Value of an entry. A write without changes is posted with its new revision too, because its writer waits until all facades
/// have that revision.
#[derive(Debug, PartialEq)]
pub(crate) struct Posted {
    payload: Payload,
    revision: i64,
}

/// Position of one facade on the board.
pub(crate) struct BoardReader {
    reader: Reader<Key, Posted>,
    revision: Arc<Mutex<i64>>,
}

/// Board to which other modules post entries. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Board {
    posted: ChangeNotifier<Key, Posted>,
    /// Newest revision of objects on the board. Locked during posts and reads.
    revision: Arc<Mutex<i64>>,
}

impl Board {
    /// Posts, replaces or (without a payload) removes entries as one change. Equal entries are not changed.
    pub(crate) fn post(&self, changes: impl IntoIterator<Item = (PayloadKind, String, Option<Payload>)>) {
        self.post_at(0, changes);
    }

    /// Like [`Board::post`], for entries that are derived from objects up to a revision.
    pub(crate) fn post_at(
        &self,
        revision: i64,
        changes: impl IntoIterator<Item = (PayloadKind, String, Option<Payload>)>,
    ) {
        let mut newest = self.revision.lock();
        let changes = changes.into_iter();
        let posted = |payload| Arc::new(Posted { payload, revision });
        self.posted.set(changes.map(|(kind, key, payload)| ((kind, key), payload.map(posted))));
        *newest = revision.max(*newest);
    }

    /// Creates a reader that has not read any entries.
    pub(crate) fn subscribe(&self) -> BoardReader {
        BoardReader { reader: self.posted.reader(), revision: self.revision.clone() }
    }
}

/// Key with its current value; `None` if the entry was removed.
pub(crate) type Change = (Key, Option<Arc<Posted>>);

impl BoardReader {
    /// Waits until there are changes. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.reader.changed().await;
    }

    /// Returns the changes since the last read, and the revision of objects that they include.
    pub(crate) fn look(&mut self) -> (i64, Vec<Change>) {
        let newest = self.revision.lock();
        (*newest, self.reader.look())
    }

    /// Returns all entries, and the revision of objects that they include.
    pub(crate) fn look_at_all(&mut self) -> (i64, Vec<(Key, Arc<Posted>)>) {
        let newest = self.revision.lock();
        (*newest, self.reader.look_at_all())
    }
}

/// Converts a posted value to an entry at a revision.
pub(crate) fn entry((kind, key): Key, posted: Option<&Posted>, revision: i64) -> Entry {
    Entry { kind, key, revision, payload: posted.map(|posted| posted.payload.clone()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_changes_nothing_moves_the_revision_all_the_same() {
        let board = Board::default();
        let mut reader = board.subscribe();
        let posted = || [(PayloadKind::Setting, "a".to_owned(), Some(Payload::Setting("b".into())))];
        for revision in [3, 4] {
            board.post_at(revision, posted());
            let (shown, changes) = reader.look();
            assert_eq!((shown, changes.len()), (revision, 1));
        }
        board.post_at(4, posted());
        assert!(reader.look().1.is_empty());
    }
}
