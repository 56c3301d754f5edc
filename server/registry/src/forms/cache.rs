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
    served: u32,
    shape: Shape,
    /// Key of the object, as one revision of etcd may contain several objects.
    object: Key,
}

impl FormKey {
    /// Key of a representation of a record in this version.
    pub(crate) fn new(record: &Record, served: u32, shape: Shape) -> Self {
        Self { revision: record.revision, served, shape, object: record.key.clone() }
    }
}

/// Kind of a cached representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
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
pub(crate) enum Made {
    Bytes(Bytes),
    Cells(Arc<[Cell]>),
    Frame(Arc<Frame>),
    Record(Arc<Record>),
}

impl Made {
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
struct Weights;

impl Weighter<FormKey, Made> for Weights {
    fn weight(&self, _key: &FormKey, made: &Made) -> u64 {
        made.weight() as u64
    }
}

/// Expected size of an entry in bytes, which determines the number of entries.
const EXPECTED_WEIGHT: usize = 4096;

/// Cache of representations, shared by readers and watchers.
pub(crate) struct FormCache(Cache<FormKey, Made, Weights>);

impl FormCache {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Cache::with_weighter(bytes / EXPECTED_WEIGHT, bytes as u64, Weights))
    }

    /// Result of a conversion webhook for a state of a custom resource.
    pub(crate) fn converted(&self, served: u32, record: &Record) -> Option<Arc<Record>> {
        match self.0.get(&FormKey::new(record, served, Shape::Converted)) {
            Some(Made::Record(record)) => Some(record),
            _ => None,
        }
    }

    /// Inserts the result of a conversion webhook for a state of a custom resource.
    pub(crate) fn keep_converted(&self, served: u32, record: &Arc<Record>) {
        let key = FormKey::new(record, served, Shape::Converted);
        self.0.insert(key, Made::Record(Arc::clone(record)));
    }

    /// Returns the cached representation, or computes it. Concurrent callers may both compute it; one result is cached.
    pub(crate) fn get_or_make(&self, key: FormKey, make: impl FnOnce() -> Made) -> Made {
        if let Some(found) = self.0.get(&key) {
            return found;
        }
        let made = make();
        self.0.insert(key, made.clone());
        made
    }
}

#[cfg(test)]
mod tests {
    use portico_store::Resource;

    use super::*;

    #[test]
    fn forms_leave_when_the_bytes_are_used_up() {
        const BYTES: usize = 64 * 1024;
        let cache = FormCache::new(BYTES);
        let object = Key::new(&Resource::new("g", "r"), "", "n");
        let key = |revision| FormKey { revision, served: 0, shape: Shape::Json, object: object.clone() };
        let make = || Made::Bytes(Bytes::from(vec![0; 100]));
        for n in 0..1000 {
            cache.get_or_make(key(n), make);
        }
        assert!(cache.0.weight() <= BYTES as u64 && cache.0.len() > 100);
        // An entry larger than the cache is computed and not stored.
        let large = || Made::Bytes(Bytes::from(vec![0; 2 * BYTES]));
        cache.get_or_make(key(1000), large);
        assert!(cache.0.get(&key(1000)).is_none());
    }
}
