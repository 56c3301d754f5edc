//! Current entries, and the references from entries to documents.

use std::sync::Arc;

use portico_kit::change_notifier::{ChangeNotifier, Reader};
use portico_machinery::discovery::ServedVersion;

use crate::documents::Documents;

/// Reader of entries by key.
pub type ServedReader = Reader<String, ServedVersion>;

/// Current entries. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Entries {
    entries: ChangeNotifier<String, ServedVersion>,
    documents: Documents,
}

impl Entries {
    pub fn new(documents: Documents) -> Self {
        Self { entries: ChangeNotifier::new(), documents }
    }

    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Sets entries, or removes those with `None`, in one step. Equal entries cause no change.
    pub fn set(&self, changes: impl IntoIterator<Item = (String, Option<ServedVersion>)>) {
        let replaced = self.entries.set(changes.into_iter().map(|(key, entry)| (key, entry.map(Arc::new))));
        for (before, after) in replaced {
            self.documents.add_references(after.iter().flat_map(|entry| entry.documents()));
            self.documents.remove_references(before.iter().flat_map(|entry| entry.documents()));
        }
    }

    pub fn reader(&self) -> ServedReader {
        self.entries.reader()
    }

    #[cfg(test)]
    pub fn all(&self) -> std::collections::BTreeMap<String, Arc<ServedVersion>> {
        self.reader().take_all().into_iter().collect()
    }
}
