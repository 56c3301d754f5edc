//! The entries as readers get them, and which documents they name.

use std::sync::Arc;

use portico_kit::change_notifier::{ChangeNotifier, Reader};
use portico_machinery::discovery::Served;

use crate::documents::Documents;

/// A reader of entries by key.
pub type ServedReader = Reader<String, Served>;

/// The current entries. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Entries {
    served: ChangeNotifier<String, Served>,
    documents: Documents,
}

impl Entries {
    pub fn new(documents: Documents) -> Self {
        Self { served: ChangeNotifier::new(), documents }
    }

    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Sets or (with nothing) removes entries together. What is the same stays the same.
    pub fn set(&self, changes: impl IntoIterator<Item = (String, Option<Served>)>) {
        let replaced = self.served.set(changes.into_iter().map(|(key, served)| (key, served.map(Arc::new))));
        for (before, after) in replaced {
            self.documents.name(after.iter().flat_map(|served| served.documents()));
            self.documents.retire(before.iter().flat_map(|served| served.documents()));
        }
    }

    pub fn reader(&self) -> ServedReader {
        self.served.reader()
    }

    #[cfg(test)]
    pub fn all(&self) -> std::collections::BTreeMap<String, Arc<Served>> {
        self.reader().look_at_all().into_iter().collect()
    }
}
