//! The cache of made forms: keyed by revision, bounded in bytes, oldest out first.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use portico_machinery::accept::{Encoding, MetaVersion};
use portico_machinery::table::Cell;

use crate::frame::{EventType, Frame};

/// What was made of an object. A revision is one state of one object, so the key needs no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FormKey {
    pub(crate) revision: i64,
    /// Which description of which kind made it.
    pub(crate) served: u32,
    pub(crate) shape: Shape,
}

/// Which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// The JSON of a version that is not the storage version.
    Json,
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
            }
    }
}

#[derive(Default)]
struct Shard {
    made: HashMap<FormKey, Made>,
    order: VecDeque<(FormKey, usize)>,
    bytes: usize,
}

const SHARDS: usize = 16;

/// Made forms, shared by readers and watchers.
pub(crate) struct FormCache {
    shards: [Mutex<Shard>; SHARDS],
    shard_bytes: usize,
}

impl FormCache {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { shards: Default::default(), shard_bytes: bytes / SHARDS }
    }

    /// The form under this key, made now if it is not there. Two who miss at once may both make it; one is kept.
    pub(crate) fn get_or_make(&self, key: FormKey, make: impl FnOnce() -> Made) -> Made {
        let shard = &self.shards[key.revision.unsigned_abs() as usize % SHARDS];
        if let Some(found) = shard.lock().made.get(&key) {
            return found.clone();
        }
        let made = make();
        let weight = made.weight();
        if weight > self.shard_bytes / 4 {
            return made;
        }
        let mut shard = shard.lock();
        if shard.made.insert(key, made.clone()).is_none() {
            shard.order.push_back((key, weight));
            shard.bytes += weight;
            shard.shrink(self.shard_bytes);
        }
        made
    }
}

impl Shard {
    fn shrink(&mut self, limit: usize) {
        while self.bytes > limit {
            let Some((key, weight)) = self.order.pop_front() else { return };
            self.made.remove(&key);
            self.bytes -= weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_forms_leave_when_the_bytes_are_used_up() {
        let cache = FormCache::new(16 * 1024);
        let key = |revision| FormKey { revision, served: 0, shape: Shape::Json };
        let make = || Made::Bytes(Bytes::from(vec![0; 100]));
        // All of one shard, which holds a 16th: four entries of 228 bytes.
        for n in 0..10 {
            cache.get_or_make(key(n * 16), make);
        }
        let shard = cache.shards[0].lock();
        assert!(shard.bytes <= 1024 && shard.made.len() == 4 && shard.order.len() == 4);
        assert!(!shard.made.contains_key(&key(0)) && shard.made.contains_key(&key(9 * 16)));
    }
}
