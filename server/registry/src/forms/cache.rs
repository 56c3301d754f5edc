//! Cache of computed representations: keyed by revision, limited in bytes; evicts the least used entries.

use std::sync::Arc;

use bytes::Bytes;
use portico_machinery::accept::{Encoding, MetaVersion};
use portico_machinery::table::Cell;
use portico_store::{Key, Record};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::frame::{EventType, Frame};

/// Identifies a representation of a state of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FormKey {
    revision: i64,
    /// ID of the served resource that computed it.
    served_id: u32,
    kind: FormKind,
    /// Key of the object, as one revision of etcd may contain several objects.
    object: Key,
}

impl FormKey {
    /// Key of a representation of a record in this version.
    pub(crate) fn new(record: &Record, served_id: u32, kind: FormKind) -> Self {
        Self { revision: record.revision, served_id, kind, object: record.key.clone() }
    }
}

/// Kind of a cached representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FormKind {
    /// JSON of a version that is not the storage version.
    Json,
    /// Record of a custom resource after conversion by a webhook.
    Converted,
    /// Cells of the table row.
    Cells,
    /// Protobuf message of the object.
    Message,
    /// Protobuf message of the metadata alone.
    MetadataMessage,
    /// Watch event with the object.
    ObjectFrame(EventType, Encoding),
    /// Watch event with the object's metadata.
    MetadataFrame(EventType, Encoding, MetaVersion),
}

/// Cached representation.
#[derive(Clone)]
pub(crate) enum CachedForm {
    Bytes(Bytes),
    Cells(Arc<[Cell]>),
    Frame(Arc<Frame>),
    Record(Arc<Record>),
}

impl CachedForm {
    fn weight(&self) -> usize {
        /// Overhead of an entry in bytes.
        const ENTRY: usize = 128;
        /// Estimated size of a cell in bytes, mostly short text.
        const CELL: usize = 64;
        ENTRY
            + match self {
                Self::Bytes(bytes) => bytes.len(),
                Self::Cells(cells) => cells.len() * CELL,
                Self::Frame(frame) => 2 * frame.line().len(),
                Self::Record(record) => record.value.json().len(),
            }
    }
}

#[derive(Clone)]
struct FormWeighter;

impl Weighter<FormKey, CachedForm> for FormWeighter {
    fn weight(&self, _key: &FormKey, form: &CachedForm) -> u64 {
        form.weight() as u64
    }
}

/// Expected size of an entry in bytes, which determines the number of entries.
const EXPECTED_WEIGHT: usize = 4096;

/// Cache of representations, shared by readers and watchers.
pub(crate) struct FormCache(Cache<FormKey, CachedForm, FormWeighter>);

impl FormCache {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Cache::with_weighter(bytes / EXPECTED_WEIGHT, bytes as u64, FormWeighter))
    }

    /// Result of a conversion webhook for a state of a custom resource.
    pub(crate) fn converted(&self, served_id: u32, record: &Record) -> Option<Arc<Record>> {
        match self.0.get(&FormKey::new(record, served_id, FormKind::Converted)) {
            Some(CachedForm::Record(record)) => Some(record),
            _ => None,
        }
    }

    /// Inserts the result of a conversion webhook for a state of a custom resource.
    pub(crate) fn insert_converted(&self, served_id: u32, record: &Arc<Record>) {
        let key = FormKey::new(record, served_id, FormKind::Converted);
        self.0.insert(key, CachedForm::Record(Arc::clone(record)));
    }

    /// Returns the cached representation, or computes it. Concurrent callers may both compute it; one result is cached.
    pub(crate) fn get_or_make(&self, key: FormKey, make: impl FnOnce() -> CachedForm) -> CachedForm {
        if let Some(found) = self.0.get(&key) {
            return found;
        }
        let form = make();
        self.0.insert(key, form.clone());
        form
    }
}

#[cfg(test)]
mod tests {
    use portico_store::Resource;

    use super::*;

    #[test]
    fn representations_are_evicted_when_the_limit_in_bytes_is_reached() {
        const BYTES: usize = 64 * 1024;
        let cache = FormCache::new(BYTES);
        let object = Key::new(&Resource::new("g", "r"), "", "n");
        let key = |revision| FormKey { revision, served_id: 0, kind: FormKind::Json, object: object.clone() };
        let make = || CachedForm::Bytes(Bytes::from(vec![0; 100]));
        for n in 0..1000 {
            cache.get_or_make(key(n), make);
        }
        assert!(cache.0.weight() <= BYTES as u64 && cache.0.len() > 100);
        // An entry larger than the cache is computed and not stored.
        let large = || CachedForm::Bytes(Bytes::from(vec![0; 2 * BYTES]));
        cache.get_or_make(key(1000), large);
        assert!(cache.0.get(&key(1000)).is_none());
    }
}
