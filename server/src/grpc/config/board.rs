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
pub(crate) struct PostedEntry {
    payload: Payload,
    revision: i64,
}

/// Position of one facade on the board.
pub(crate) struct BoardReader {
    reader: Reader<Key, PostedEntry>,
    revision: Arc<Mutex<i64>>,
}

/// Board to which other modules post entries. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Board {
    posted: ChangeNotifier<Key, PostedEntry>,
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
        let posted = |payload| Arc::new(PostedEntry { payload, revision });
        self.posted.set(changes.map(|(kind, key, payload)| ((kind, key), payload.map(posted))));
        *newest = revision.max(*newest);
    }

    /// Creates a reader that has not read any entries.
    pub(crate) fn subscribe(&self) -> BoardReader {
        BoardReader { reader: self.posted.reader(), revision: self.revision.clone() }
    }
}

/// Key with its current value; `None` if the entry was removed.
pub(crate) type Change = (Key, Option<Arc<PostedEntry>>);

impl BoardReader {
    /// Waits until there are changes. Cancel safe.
    pub(crate) async fn wait_changed(&self) {
        self.reader.changed().await;
    }

    /// Returns the changes since the last read, and the revision of objects that they include.
    pub(crate) fn read_changes(&mut self) -> (i64, Vec<Change>) {
        let newest = self.revision.lock();
        (*newest, self.reader.take_changes())
    }

    /// Returns all entries, and the revision of objects that they include.
    pub(crate) fn read_all(&mut self) -> (i64, Vec<(Key, Arc<PostedEntry>)>) {
        let newest = self.revision.lock();
        (*newest, self.reader.take_all())
    }
}

/// Converts a posted value to an entry at a revision.
pub(crate) fn entry((kind, key): Key, posted: Option<&PostedEntry>, revision: i64) -> Entry {
    Entry { kind, key, revision, payload: posted.map(|posted| posted.payload.clone()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_without_changes_advances_the_revision() {
        let board = Board::default();
        let mut reader = board.subscribe();
        let posted = || [(PayloadKind::Setting, "a".to_owned(), Some(Payload::Setting("b".into())))];
        for revision in [3, 4] {
            board.post_at(revision, posted());
            let (revision_read, changes) = reader.read_changes();
            assert_eq!((revision_read, changes.len()), (revision, 1));
        }
        board.post_at(4, posted());
        assert!(reader.read_changes().1.is_empty());
    }
}
