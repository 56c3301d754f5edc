//! Current entries, and the references from entries to documents.

use std::sync::Arc;

use portico_kit::change_notifier::{ChangeNotifier, Reader};
use portico_machinery::discovery::Served;

use crate::documents::Documents;

/// Reader of entries by key.
pub type ServedReader = Reader<String, Served>;

/// Current entries. Cheap to clone.
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

    /// Sets entries, or removes those with `None`, in one step. Equal entries cause no change.
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
