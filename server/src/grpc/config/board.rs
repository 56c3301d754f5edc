//! The board: every config entry that is no route (served group versions, checks, settings, roles and bindings).

use std::sync::Arc;

use parking_lot::Mutex;
use portico_kit::ledger::{Ledger, Reader};
use portico_proto::convert::{Entry, Payload, PayloadKind};

/// The kind and the key of an entry.
pub(crate) type Key = (PayloadKind, String);

/// One facade's view of the board.
pub(crate) struct BoardReader {
    reader: Reader<Key, Payload>,
    revision: Arc<Mutex<i64>>,
}

/// Where other rooms post. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Board {
    posted: Ledger<Key, Payload>,
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
        self.posted.set(changes.map(|(kind, key, payload)| ((kind, key), payload.map(Arc::new))));
        *newest = revision.max(*newest);
    }

    /// A reader that has seen nothing.
    pub(crate) fn subscribe(&self) -> BoardReader {
        BoardReader { reader: self.posted.reader(), revision: self.revision.clone() }
    }
}

impl BoardReader {
    /// Waits until there is something to look at. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.reader.changed().await;
    }

    /// What changed since the last look, and the revision of objects that it shows.
    pub(crate) fn look(&mut self) -> (i64, Vec<(Key, Option<Arc<Payload>>)>) {
        let newest = self.revision.lock();
        (*newest, self.reader.look())
    }

    /// Everything, and the revision of objects that it shows.
    pub(crate) fn look_at_all(&mut self) -> (i64, Vec<(Key, Arc<Payload>)>) {
        let newest = self.revision.lock();
        (*newest, self.reader.look_at_all())
    }
}

/// What stands under a key, as an entry at this revision.
pub(crate) fn entry((kind, key): Key, payload: Option<&Payload>, revision: i64) -> Entry {
    Entry { kind, key, revision, payload: payload.cloned() }
}
