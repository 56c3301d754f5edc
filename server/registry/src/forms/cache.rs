//! The cache of made forms: keyed by revision, bounded in bytes; what is read least leaves.

use std::sync::Arc;

use bytes::Bytes;
use portico_machinery::accept::{Encoding, MetaVersion};
use portico_machinery::table::Cell;
use portico_store::{Key, Record};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::frame::{EventType, Frame};

/// Identifies a form of a state of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FormKey {
    revision: i64,
    /// Which description of which kind made it.
    served: u32,
    shape: Shape,
    /// The object, as one revision of etcd may write many.
    object: Key,
}

impl FormKey {
    /// The key of a form of a record in this version.
    pub(crate) fn new(record: &Record, served: u32, shape: Shape) -> Self {
        Self { revision: record.revision, served, shape, object: record.key.clone() }
    }
}

/// Which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// The JSON of a version that is not the storage version.
    Json,
    /// The record of a custom resource as a webhook has converted it.
    Converted,
    /// The cells of its table row.
    Cells,
    /// The protobuf message of the object.
    Message,
    /// The protobuf message of its metadata alone.
    MetadataMessage,
    /// A watch event of the object.
    ObjectFrame(EventType, Encoding),
    /// A watch event of the object's metadata.
    MetadataFrame(EventType, Encoding, MetaVersion),
}

/// A made form.
#[derive(Clone)]
pub(crate) enum Made {
    Bytes(Bytes),
    Cells(Arc<[Cell]>),
    Frame(Arc<Frame>),
    Record(Arc<Record>),
}

impl Made {
    fn weight(&self) -> usize {
        /// What an entry takes besides its content.
        const ENTRY: usize = 128;
        /// What a cell takes, mostly short text.
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

/// What an entry is expected to weigh, which sizes the tables.
const EXPECTED_WEIGHT: usize = 4096;

/// Made forms, shared by readers and watchers.
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

    /// Keeps what a webhook has made of a state of a custom resource.
    pub(crate) fn keep_converted(&self, served: u32, record: &Arc<Record>) {
        let key = FormKey::new(record, served, Shape::Converted);
        self.0.insert(key, Made::Record(Arc::clone(record)));
    }

    /// The form under this key, made now if it is not there. Two who miss at once may both make it; one is kept.
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
        // What is larger than all of it is made and not kept.
        let large = || Made::Bytes(Bytes::from(vec![0; 2 * BYTES]));
        cache.get_or_make(key(1000), large);
        assert!(cache.0.get(&key(1000)).is_none());
    }
}
