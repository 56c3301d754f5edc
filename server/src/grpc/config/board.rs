//! The board: every config entry that is no route (served group versions, checks, settings, roles and bindings).

use std::sync::Arc;

use parking_lot::Mutex;
use portico_kit::change_notifier::{ChangeNotifier, Reader};
use portico_proto::convert::{Entry, Payload, PayloadKind};

/// The kind and the key of an entry.
pub(crate) type Key = (PayloadKind, String);

/// What stands under a key. An object that was written without saying anything new is news all the same: whoever wrote
/// it waits until its revision is known everywhere.
#[derive(Debug, PartialEq)]
pub(crate) struct Posted {
    payload: Payload,
    revision: i64,
}

/// One facade's view of the board.
pub(crate) struct BoardReader {
    reader: Reader<Key, Posted>,
    revision: Arc<Mutex<i64>>,
}

/// Where other modules post. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Board {
    posted: ChangeNotifier<Key, Posted>,
    /// Everything posted that is about objects is of this revision or older. Held while posting and while looking.
    revision: Arc<Mutex<i64>>,
}

impl Board {
    /// Posts, replaces or (without a payload) takes down entries together. What is the same stays the same.
    pub(crate) fn post(&self, changes: impl IntoIterator<Item = (PayloadKind, String, Option<Payload>)>) {
        self.post_at(0, changes);
    }

    /// The same for entries that show objects up to this revision.
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

    /// A reader that has seen nothing.
    pub(crate) fn subscribe(&self) -> BoardReader {
        BoardReader { reader: self.posted.reader(), revision: self.revision.clone() }
    }
}

/// What stands under a key now, or that nothing does.
pub(crate) type Change = (Key, Option<Arc<Posted>>);

impl BoardReader {
    /// Waits until there is something to look at. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.reader.changed().await;
    }

    /// What changed since the last look, and the revision of objects that it shows.
    pub(crate) fn look(&mut self) -> (i64, Vec<Change>) {
        let newest = self.revision.lock();
        (*newest, self.reader.look())
    }

    /// Everything, and the revision of objects that it shows.
    pub(crate) fn look_at_all(&mut self) -> (i64, Vec<(Key, Arc<Posted>)>) {
        let newest = self.revision.lock();
        (*newest, self.reader.look_at_all())
    }
}

/// What stands under a key, as an entry at this revision.
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
