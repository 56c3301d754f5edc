//! The state of one resource at one moment: immutable, ordered, shared. Knows nothing of SQL, revisions of history or who reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::key::{Key, Resource};
use crate::record::Record;
use crate::signature::Signature;
use crate::unreadable::Unreadable;

/// A chunk is split when it grows beyond this; a write copies the pointers of one chunk.
const CHUNK_MAX: usize = 128;
/// A chunk that shrinks below this is joined with its neighbour when both fit in half a chunk.
const CHUNK_MIN: usize = 32;

/// A record, and beside it what selectors look at first.
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
    /// Never holds an empty chunk.
    chunks: Vec<Chunk>,
    len: usize,
    /// Nearly always none.
    unreadable: Option<Arc<Apart>>,
}

/// Objects that cannot be read.
#[derive(Clone, Debug, Default)]
struct Apart {
    by_path: BTreeMap<Box<str>, Unreadable>,
    /// Those whose keys cannot be read: what is left of a key may be another object's.
    without_key: Vec<Unreadable>,
}

impl Objects {
    /// Records that are in path order already.
    pub(crate) fn from_sorted(records: &[Arc<Record>], unreadable: Vec<Unreadable>) -> Self {
        let chunk = |records: &[Arc<Record>]| Arc::new(records.iter().cloned().map(Entry::new).collect());
        let chunks = records.chunks(CHUNK_MAX / 2).map(chunk).collect();
        let unreadable = (!unreadable.is_empty()).then(|| {
            let (with, without_key) = unreadable.into_iter().partition::<Vec<_>, _>(Unreadable::has_key);
            let by_path = |object: Unreadable| (object.key().path().into(), object);
            Arc::new(Apart { by_path: with.into_iter().map(by_path).collect(), without_key })
        });
        Self { chunks, len: records.len(), unreadable }
    }

    /// The objects that cannot be read: in key order, then those without a key.
    pub(crate) fn unreadable(&self) -> impl Iterator<Item = &Unreadable> {
        self.unreadable.iter().flat_map(|apart| apart.by_path.values().chain(&apart.without_key))
    }

    pub(crate) fn get_unreadable(&self, path: &str) -> Option<&Unreadable> {
        self.unreadable.as_ref()?.by_path.get(path)
    }

    /// Notes an object that cannot be read; whether it is the first time.
    pub(crate) fn insert_unreadable(&mut self, object: Unreadable) -> bool {
        let apart = Arc::make_mut(self.unreadable.get_or_insert_default());
        apart.by_path.insert(object.key().path().into(), object).is_none()
    }

    /// Forgets an object that could not be read; whether there was one.
    pub(crate) fn remove_unreadable(&mut self, path: &str) -> bool {
        let Some(apart) = &mut self.unreadable else { return false };
        let removed = Arc::make_mut(apart).by_path.remove(path).is_some();
        if apart.by_path.is_empty() && apart.without_key.is_empty() {
            self.unreadable = None;
        }
        removed
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Arc<Record>> {
        let chunk = self.chunks.get(self.chunk_of(path))?;
        let at = chunk.binary_search_by(|entry| entry.path().cmp(path)).ok()?;
        Some(&chunk[at].record)
    }

    /// The state of an object, whether it can be read or not.
    pub(crate) fn get_any(&self, path: &str) -> Option<Arc<Record>> {
        let unreadable = || self.get_unreadable(path).map(|object| object.record.clone());
        self.get(path).cloned().or_else(unreadable)
    }

    /// How many there are, those that cannot be read included.
    pub(crate) fn count(&self) -> usize {
        self.len + self.unreadable().count()
    }

    /// All records that can be read, in path order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.chunks.iter().flat_map(|chunk| chunk.iter().map(|entry| &entry.record))
    }

    /// Inserts or replaces; the record before.
    pub(crate) fn insert(&mut self, record: Arc<Record>) -> Option<Arc<Record>> {
        if self.chunks.is_empty() {
            self.chunks.push(Arc::new(Vec::new()));
        }
        let index = self.chunk_of(record.key.path());
        let chunk = Arc::make_mut(&mut self.chunks[index]);
        match chunk.binary_search_by(|other| other.path().cmp(record.key.path())) {
            Ok(at) => Some(std::mem::replace(&mut chunk[at], Entry::new(record)).record),
            Err(at) => {
                chunk.insert(at, Entry::new(record));
                self.len += 1;
                if chunk.len() > CHUNK_MAX {
                    let tail = chunk.split_off(CHUNK_MAX / 2);
                    self.chunks.insert(index + 1, Arc::new(tail));
                }
                None
            }
        }
    }

    /// Removes; the record before.
    pub(crate) fn remove(&mut self, path: &str) -> Option<Arc<Record>> {
        let index = self.chunk_of(path);
        let at = self.chunks.get(index)?.binary_search_by(|entry| entry.path().cmp(path)).ok()?;
        let chunk = Arc::make_mut(&mut self.chunks[index]);
        let removed = chunk.remove(at).record;
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

    /// The chunk in which a path is, or would be.
    fn chunk_of(&self, path: &str) -> usize {
        let after =
            self.chunks.partition_point(|chunk| chunk.first().is_some_and(|first| first.path() <= path));
        after.saturating_sub(1)
    }

    /// How many records come before this path, or (`inclusive`) up to it.
    fn rank(&self, path: &str, inclusive: bool) -> usize {
        let index = self.chunk_of(path);
        let before: usize = self.chunks.iter().take(index).map(|chunk| chunk.len()).sum();
        let within = self.chunks.get(index).map_or(0, |chunk| {
            chunk.partition_point(|entry| entry.path() < path || (inclusive && entry.path() == path))
        });
        before + within
    }
}

/// The objects of one resource, all as of one moment, in key order. Cheap to clone and to keep.
#[derive(Clone, Debug)]
pub struct Snapshot {
    resource: Resource,
    objects: Arc<Objects>,
    revision: i64,
    changed: i64,
}

impl Snapshot {
    pub(crate) fn new(resource: Resource, objects: Arc<Objects>, changed: i64, current: i64) -> Self {
        Self { resource, objects, revision: changed.max(current), changed }
    }

    /// The storage resource.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// A revision at which this is exactly the state: what a list of it carries, and what a watch may start from.
    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// This is exactly the state at every revision from here to [`Snapshot::revision`].
    pub fn changed(&self) -> i64 {
        self.changed
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.len == 0
    }

    /// One object.
    pub fn get(&self, key: &Key) -> Option<&Arc<Record>> {
        self.get_path(key.path())
    }

    /// One object by [`Key::path`].
    pub fn get_path(&self, path: &str) -> Option<&Arc<Record>> {
        self.objects.get(path)
    }

    /// The object of this [`Key::path`] when it exists and cannot be read.
    pub fn unreadable(&self, path: &str) -> Option<&Unreadable> {
        self.objects.get_unreadable(path)
    }

    /// The objects of a namespace (None: all) that cannot be read, in key order, then those without a key; none of them is
    /// among the others.
    pub fn unreadable_in<'a>(&'a self, namespace: Option<&'a str>) -> impl Iterator<Item = &'a Unreadable> {
        let of_namespace =
            move |object: &&Unreadable| namespace.is_none_or(|n| object.key().namespace() == n);
        self.objects.unreadable().filter(of_namespace)
    }

    /// All objects in key order.
    pub fn iter(&self) -> Range<'_> {
        self.range(None, None)
    }

    /// The objects of a namespace (None: all) whose path is greater than `after`, in key order. The length is known.
    pub fn range(&self, namespace: Option<&str>, after: Option<&str>) -> Range<'_> {
        let (mut start, mut end) = (0, self.objects.len);
        if let Some(namespace) = namespace {
            start = self.objects.rank(&format!("{namespace}/"), false);
            // '0' follows '/': the first text beyond all that start with `namespace/`.
            end = self.objects.rank(&format!("{namespace}0"), false);
        }
        if let Some(after) = after {
            start = start.max(self.objects.rank(after, true));
        }
        Range::new(&self.objects, start, end.max(start))
    }
}

/// An iterator over a part of a [`Snapshot`]; its length is known.
#[derive(Clone, Debug)]
pub struct Range<'a> {
    chunks: std::slice::Iter<'a, Chunk>,
    entries: std::slice::Iter<'a, Entry>,
    left: usize,
}

impl<'a> Range<'a> {
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
        Self { chunks, entries, left: end - start }
    }

    /// The next record that can have all that is required; those before it are passed over unread.
    pub fn next_matching(&mut self, required: Signature) -> Option<&'a Arc<Record>> {
        loop {
            self.left = self.left.checked_sub(1)?;
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

    /// The records that can have all that is required.
    pub fn matching(mut self, required: Signature) -> impl Iterator<Item = &'a Arc<Record>> {
        std::iter::from_fn(move || self.next_matching(required))
    }
}

impl<'a> Iterator for Range<'a> {
    type Item = &'a Arc<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_matching(Signature::default())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Range<'_> {}

#[cfg(test)]
mod tests;
