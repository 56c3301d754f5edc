//! Immutable, ordered, shared state of one resource at one revision. Independent of SQL, history and readers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::key::{Key, Resource};
use crate::record::Record;
use crate::signature::Signature;
use crate::unreadable::Unreadable;

/// A chunk is split when it grows beyond this; a write copies the pointers of one chunk.
const CHUNK_MAX: usize = 128;
/// A chunk that shrinks below this is joined with its neighbor if both fit into half a chunk.
const CHUNK_MIN: usize = 32;

/// A record with the signature that selectors check first.
#[derive(Clone, Debug)]
struct Entry {
    signature: Signature,
    record: Arc<Record>,
}

impl Entry {
    fn new(record: Arc<Record>) -> Self {
        Self { signature: Signature::of(record.value.indexed()), record }
    }

    fn path(&self) -> &str {
        self.record.key.path()
    }
}

type Chunk = Arc<Vec<Entry>>;

/// An ordered set of records by path. A clone shares all chunks; a change copies one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    /// Chunks in path order, none of them empty.
    chunks: Vec<Chunk>,
    len: usize,
    /// Unreadable objects; `None` in most cases.
    unreadable: Option<Arc<UnreadableObjects>>,
}

/// Objects that cannot be read.
#[derive(Clone, Debug, Default)]
struct UnreadableObjects {
    by_path: BTreeMap<Box<str>, Unreadable>,
    /// Objects whose keys cannot be read: the remains of a key may equal the key of another object.
    without_key: Vec<Unreadable>,
}

impl Objects {
    /// Creates the set from records in path order.
    pub(crate) fn from_sorted(records: &[Arc<Record>], unreadable: Vec<Unreadable>) -> Self {
        let chunk = |records: &[Arc<Record>]| Arc::new(records.iter().cloned().map(Entry::new).collect());
        let chunks = records.chunks(CHUNK_MAX / 2).map(chunk).collect();
        let unreadable = (!unreadable.is_empty()).then(|| {
            let (with, without_key) = unreadable.into_iter().partition::<Vec<_>, _>(Unreadable::has_key);
            let by_path = |object: Unreadable| (object.key().path().into(), object);
            Arc::new(UnreadableObjects { by_path: with.into_iter().map(by_path).collect(), without_key })
        });
        Self { chunks, len: records.len(), unreadable }
    }

    /// Iterates over the unreadable objects: in key order, then those without a key.
    pub(crate) fn unreadable(&self) -> impl Iterator<Item = &Unreadable> {
        self.unreadable
            .iter()
            .flat_map(|unreadable| unreadable.by_path.values().chain(&unreadable.without_key))
    }

    pub(crate) fn get_unreadable(&self, path: &str) -> Option<&Unreadable> {
        self.unreadable.as_ref()?.by_path.get(path)
    }

    /// Adds an unreadable object. Returns true if it is new.
    pub(crate) fn insert_unreadable(&mut self, object: Unreadable) -> bool {
        let unreadable = Arc::make_mut(self.unreadable.get_or_insert_default());
        unreadable.by_path.insert(object.key().path().into(), object).is_none()
    }

    /// Removes an unreadable object. Returns true if it was present.
    pub(crate) fn remove_unreadable(&mut self, path: &str) -> bool {
        let Some(unreadable) = &mut self.unreadable else { return false };
        let removed = Arc::make_mut(unreadable).by_path.remove(path).is_some();
        if unreadable.by_path.is_empty() && unreadable.without_key.is_empty() {
            self.unreadable = None;
        }
        removed
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Arc<Record>> {
        let chunk = self.chunks.get(self.chunk_of(path))?;
        let position = chunk.binary_search_by(|entry| entry.path().cmp(path)).ok()?;
        Some(&chunk[position].record)
    }

    /// Returns the state of an object, readable or not.
    pub(crate) fn get_any(&self, path: &str) -> Option<Arc<Record>> {
        let unreadable = || self.get_unreadable(path).map(|object| object.record.clone());
        self.get(path).cloned().or_else(unreadable)
    }

    /// Returns the number of objects, including unreadable ones.
    pub(crate) fn count(&self) -> usize {
        self.len + self.unreadable().count()
    }

    /// Iterates over all readable records in path order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.chunks.iter().flat_map(|chunk| chunk.iter().map(|entry| &entry.record))
    }

    /// Inserts or replaces a record. Returns the previous record.
    pub(crate) fn insert(&mut self, record: Arc<Record>) -> Option<Arc<Record>> {
        if self.chunks.is_empty() {
            self.chunks.push(Arc::new(Vec::new()));
        }
        let index = self.chunk_of(record.key.path());
        let chunk = Arc::make_mut(&mut self.chunks[index]);
        match chunk.binary_search_by(|other| other.path().cmp(record.key.path())) {
            Ok(position) => Some(std::mem::replace(&mut chunk[position], Entry::new(record)).record),
            Err(position) => {
                chunk.insert(position, Entry::new(record));
                self.len += 1;
                if chunk.len() > CHUNK_MAX {
                    let tail = chunk.split_off(CHUNK_MAX / 2);
                    self.chunks.insert(index + 1, Arc::new(tail));
                }
                None
            }
        }
    }

    /// Removes a record and returns it.
    pub(crate) fn remove(&mut self, path: &str) -> Option<Arc<Record>> {
        let index = self.chunk_of(path);
        let position = self.chunks.get(index)?.binary_search_by(|entry| entry.path().cmp(path)).ok()?;
        let chunk = Arc::make_mut(&mut self.chunks[index]);
        let removed = chunk.remove(position).record;
        self.len -= 1;
        if chunk.is_empty() {
            self.chunks.remove(index);
        } else if chunk.len() < CHUNK_MIN {
            self.join_with_next(index);
        }
        Some(removed)
    }

    fn join_with_next(&mut self, index: usize) {
        let Some(next) = self.chunks.get(index + 1) else { return };
        if self.chunks[index].len() + next.len() <= CHUNK_MAX / 2 {
            let next = self.chunks.remove(index + 1);
            Arc::make_mut(&mut self.chunks[index]).extend(next.iter().cloned());
        }
    }

    /// Returns the index of the chunk that contains a path, or would contain it.
    fn chunk_of(&self, path: &str) -> usize {
        let following =
            self.chunks.partition_point(|chunk| chunk.first().is_some_and(|first| first.path() <= path));
        following.saturating_sub(1)
    }

    /// Returns the number of records before this path, or, if `inclusive`, up to it.
    fn rank(&self, path: &str, inclusive: bool) -> usize {
        let index = self.chunk_of(path);
        let preceding: usize = self.chunks.iter().take(index).map(|chunk| chunk.len()).sum();
        let in_chunk = self.chunks.get(index).map_or(0, |chunk| {
            chunk.partition_point(|entry| entry.path() < path || (inclusive && entry.path() == path))
        });
        preceding + in_chunk
    }
}

/// Objects of one resource at one revision, in key order. Cheap to clone and to store.
#[derive(Clone, Debug)]
pub struct Snapshot {
    resource: Resource,
    objects: Arc<Objects>,
    revision: i64,
    unchanged_since: i64,
}

impl Snapshot {
    pub(crate) fn new(resource: Resource, objects: Arc<Objects>, unchanged_since: i64, current: i64) -> Self {
        Self { resource, objects, revision: unchanged_since.max(current), unchanged_since }
    }

    /// Returns the storage resource.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Returns a revision at which this is exactly the state: the resource version of a list, and a possible start of a watch.
    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// Returns the first revision of the range, up to [`Snapshot::revision`], at which this is exactly the state.
    pub fn unchanged_since(&self) -> i64 {
        self.unchanged_since
    }

    /// Returns the number of readable objects.
    pub fn len(&self) -> usize {
        self.objects.len
    }

    /// True if there are no readable objects.
    pub fn is_empty(&self) -> bool {
        self.objects.len == 0
    }

    /// Returns one object.
    pub fn get(&self, key: &Key) -> Option<&Arc<Record>> {
        self.get_path(key.path())
    }

    /// Returns one object by its [`Key::path`].
    pub fn get_path(&self, path: &str) -> Option<&Arc<Record>> {
        self.objects.get(path)
    }

    /// Returns the unreadable object with this [`Key::path`], if it exists.
    pub fn unreadable(&self, path: &str) -> Option<&Unreadable> {
        self.objects.get_unreadable(path)
    }

    /// Iterates over the unreadable objects of a namespace (`None` for all): in key order, then those without a key. The other
    /// methods return none of them.
    pub fn unreadable_in<'a>(&'a self, namespace: Option<&'a str>) -> impl Iterator<Item = &'a Unreadable> {
        let of_namespace =
            move |object: &&Unreadable| namespace.is_none_or(|n| object.key().namespace() == n);
        self.objects.unreadable().filter(of_namespace)
    }

    /// Iterates over all objects in key order.
    pub fn iter(&self) -> SnapshotIter<'_> {
        self.range(None, None)
    }

    /// Iterates over the objects of a namespace (`None` for all) whose path is greater than `after`, in key order,
    /// with a known length.
    pub fn range(&self, namespace: Option<&str>, after: Option<&str>) -> SnapshotIter<'_> {
        let (mut start, mut end) = (0, self.objects.len);
        if let Some(namespace) = namespace {
            start = self.objects.rank(&format!("{namespace}/"), false);
            // '0' follows '/': it is the first text greater than all that start with `namespace/`.
            end = self.objects.rank(&format!("{namespace}0"), false);
        }
        if let Some(after) = after {
            start = start.max(self.objects.rank(after, true));
        }
        SnapshotIter::new(&self.objects, start, end.max(start))
    }
}

/// Iterator over a part of a [`Snapshot`], with a known length.
#[derive(Clone, Debug)]
pub struct SnapshotIter<'a> {
    chunks: std::slice::Iter<'a, Chunk>,
    entries: std::slice::Iter<'a, Entry>,
    remaining: usize,
}

impl<'a> SnapshotIter<'a> {
    fn new(objects: &'a Objects, start: usize, end: usize) -> Self {
        let mut chunks = objects.chunks.iter();
        let mut skip = start;
        let mut entries = [].iter();
        for chunk in chunks.by_ref() {
            if skip < chunk.len() {
                entries = chunk[skip..].iter();
                break;
            }
            skip -= chunk.len();
        }
        Self { chunks, entries, remaining: end - start }
    }

    /// Returns the next record that may have everything that is required. Skips the records before it without reading them.
    pub fn next_matching(&mut self, required: Signature) -> Option<&'a Arc<Record>> {
        loop {
            self.remaining = self.remaining.checked_sub(1)?;
            let entry = loop {
                match self.entries.next() {
                    Some(entry) => break entry,
                    None => self.entries = self.chunks.next()?.iter(),
                }
            };
            if entry.signature.may_match(required) {
                return Some(&entry.record);
            }
        }
    }

    /// Iterates over the records that may have everything that is required.
    pub fn matching(mut self, required: Signature) -> impl Iterator<Item = &'a Arc<Record>> {
        std::iter::from_fn(move || self.next_matching(required))
    }
}

impl<'a> Iterator for SnapshotIter<'a> {
    type Item = &'a Arc<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_matching(Signature::default())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for SnapshotIter<'_> {}

#[cfg(test)]
mod tests;
