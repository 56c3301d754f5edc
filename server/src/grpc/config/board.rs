//! The board: every config entry that is no route (served group versions, checks, settings).

use std::sync::Arc;

use portico_kit::ledger::{Ledger, Reader};
use portico_proto::convert::{Entry, Payload, PayloadKind};

/// The kind and the key of an entry.
pub(crate) type Key = (PayloadKind, String);

/// One facade's view of the board.
pub(crate) type BoardReader = Reader<Key, Payload>;

/// Where other rooms post. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Board {
    posted: Ledger<Key, Payload>,
}

impl Board {
    /// Posts, replaces or (without a payload) takes down entries together. What is the same stays the same.
    pub(crate) fn post(&self, changes: impl IntoIterator<Item = (PayloadKind, String, Option<Payload>)>) {
        let changes = changes.into_iter();
        self.posted.set(changes.map(|(kind, key, payload)| ((kind, key), payload.map(Arc::new))));
    }

    /// A reader that has seen nothing.
    pub(crate) fn subscribe(&self) -> BoardReader {
        self.posted.reader()
    }
}

/// What stands under a key, as an entry at this revision.
pub(crate) fn entry((kind, key): Key, payload: Option<&Payload>, revision: i64) -> Entry {
    Entry { kind, key, revision, payload: payload.cloned() }
}
