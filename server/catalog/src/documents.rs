//! Store of documents by content hash. Documents are available while entries name them, and for some time after.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use indexmap::IndexMap;
use parking_lot::Mutex;
use portico_machinery::digest::sha256_hex;

/// Minimum size in bytes of documents that are stored compressed.
const COMPRESS_FROM: usize = 8 * 1024;
/// Number of documents kept after the last entry that named them is gone, because a facade may be fetching them.
const RETIRED: usize = 256;
/// Discovery and OpenAPI documents of all backends, compressed.
///
/// Limit (Backends, bytes): further ones are omitted, and a line is logged.
const LIMIT: usize = 256 << 20;

/// Function that generates a document. The document depends only on its name.
pub(crate) type Recipe = Arc<dyn Fn() -> Vec<u8> + Send + Sync>;

/// Handle of the store. There is one per control service; clones share it.
#[derive(Clone, Default)]
pub struct Documents(Arc<Mutex<Store>>);

#[derive(Default)]
struct Store {
    kept: HashMap<String, Kept>,
    /// Number of entries that name a document.
    named: HashMap<String, usize>,
    retired: VecDeque<String>,
    bytes: usize,
    made: Made,
}

#[derive(Clone)]
enum Kept {
    Plain(Bytes),
    Deflated(Bytes, usize),
    /// Generated on request. Small documents are generated each time, because facades cache them.
    Recipe(Recipe),
}

/// Cache of large generated documents, compressed. The least recently used are evicted.
#[derive(Default)]
struct Made {
    documents: IndexMap<String, Kept>,
    bytes: usize,
    limit: usize,
}

impl Made {
    fn get(&mut self, name: &str) -> Option<Kept> {
        let kept = self.documents.shift_remove(name)?;
        self.documents.insert(name.to_owned(), kept.clone());
        Some(kept)
    }

    fn put(&mut self, name: &str, kept: Kept) {
        self.remove(name);
        self.bytes += kept.size();
        self.documents.insert(name.to_owned(), kept);
        while self.bytes > self.limit {
            let Some((_, oldest)) = self.documents.shift_remove_index(0) else { break };
            self.bytes -= oldest.size();
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some(gone) = self.documents.shift_remove(name) {
            self.bytes -= gone.size();
        }
    }
}

impl Kept {
    fn new(bytes: &[u8]) -> Self {
        if bytes.len() < COMPRESS_FROM {
            return Self::Plain(Bytes::copy_from_slice(bytes));
        }
        let mut encoder = DeflateEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::default());
        // Writing to memory cannot fail; if it did, the document would be stored uncompressed.
        match encoder.write_all(bytes).and_then(|()| encoder.finish()) {
            Ok(packed) => Self::Deflated(Bytes::from(packed.into_boxed_slice()), bytes.len()),
            Err(_) => Self::Plain(Bytes::copy_from_slice(bytes)),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Plain(bytes) | Self::Deflated(bytes, _) => bytes.len(),
            Self::Recipe(_) => 0,
        }
    }

    fn open(&self) -> Option<Bytes> {
        match self {
            Self::Plain(bytes) => Some(bytes.clone()),
            Self::Recipe(make) => Some(make().into()),
            Self::Deflated(packed, length) => {
                let mut bytes = Vec::with_capacity(*length);
                DeflateDecoder::new(&packed[..]).read_to_end(&mut bytes).ok()?;
                Some(bytes.into())
            }
        }
    }
}

impl fmt::Debug for Documents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Documents").field(&self.size()).finish()
    }
}

impl Documents {
    /// Creates an empty store that caches up to `cache_bytes` of generated documents.
    pub(crate) fn new(made_bytes: usize) -> Self {
        let made = Made { limit: made_bytes, ..Made::default() };
        Self(Arc::new(Mutex::new(Store { made, ..Store::default() })))
    }

    /// Stores a document and returns its hash; an empty string if the store is full.
    #[must_use]
    pub(crate) fn put(&self, bytes: &[u8]) -> String {
        let hash = sha256_hex(bytes);
        if self.0.lock().kept.contains_key(&hash) {
            return hash;
        }
        let kept = Kept::new(bytes);
        let mut store = self.0.lock();
        if store.bytes + kept.size() > LIMIT {
            tracing::warn!(size = kept.size(), limit = LIMIT, "document store is full, document skipped");
            return String::new();
        }
        store.bytes += kept.size();
        if let Some(twin) = store.kept.insert(hash.clone(), kept) {
            store.bytes -= twin.size();
        }
        hash
    }

    /// Stores a recipe under a name that identifies the inputs of the document.
    pub(crate) fn offer(&self, name: String, make: Recipe) -> String {
        self.0.lock().kept.insert(name.clone(), Kept::Recipe(make));
        name
    }

    /// Adds references of an entry to documents.
    pub(crate) fn name<'a>(&self, hashes: impl IntoIterator<Item = &'a str>) {
        let mut store = self.0.lock();
        for hash in hashes {
            *store.named.entry(hash.to_owned()).or_default() += 1;
        }
    }

    /// Removes references of an entry. Documents without references are deleted after some time.
    pub(crate) fn retire<'a>(&self, hashes: impl IntoIterator<Item = &'a str>) {
        let mut store = self.0.lock();
        for hash in hashes {
            match store.named.get_mut(hash) {
                Some(count) if *count > 1 => *count -= 1,
                _ => {
                    store.named.remove(hash);
                    store.retired.push_back(hash.to_owned());
                }
            }
        }
        while store.retired.len() > RETIRED {
            let Some(oldest) = store.retired.pop_front() else { break };
            if store.named.contains_key(&oldest) {
                continue;
            }
            if let Some(gone) = store.kept.remove(&oldest) {
                store.bytes -= gone.size();
            }
            store.made.remove(&oldest);
        }
    }

    /// Returns a document, if an entry names it.
    pub async fn get(&self, hash: &str) -> Option<Bytes> {
        match self.find(hash)? {
            Kept::Recipe(make) => {
                let bytes = make();
                if bytes.len() >= COMPRESS_FROM {
                    let packed = Kept::new(&bytes);
                    self.0.lock().made.put(hash, packed);
                }
                Some(bytes.into())
            }
            kept => kept.open(),
        }
    }

    /// Returns the stored form; a recipe only if the document is not cached.
    fn find(&self, hash: &str) -> Option<Kept> {
        let mut store = self.0.lock();
        match store.kept.get(hash)?.clone() {
            Kept::Recipe(make) => Some(store.made.get(hash).unwrap_or(Kept::Recipe(make))),
            kept => Some(kept),
        }
    }

    /// Returns the number of documents and their total size in bytes.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let store = self.0.lock();
        (store.kept.len(), store.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn documents_are_had_by_hash_small_and_large() {
        let documents = Documents::default();
        for size in [0, 10, COMPRESS_FROM, 200_000] {
            let bytes: Vec<u8> = (0..size).map(|i| (i % 7) as u8).collect();
            let hash = documents.put(&bytes);
            assert_eq!(documents.get(&hash).await.unwrap(), bytes);
            assert_eq!(documents.put(&bytes), hash);
        }
        let (count, bytes) = documents.size();
        assert!(count == 4 && bytes < 20_000, "{bytes}");
        assert_eq!(documents.get("none").await, None);
    }

    #[tokio::test]
    async fn a_document_that_is_offered_is_made_when_asked_for() {
        let documents = Documents::default();
        let name = documents.offer("made-x".to_owned(), Arc::new(|| b"fresh".to_vec()));
        assert_eq!(documents.get(&name).await.unwrap(), "fresh");
        assert_eq!(documents.size(), (1, 0));
    }

    #[tokio::test]
    async fn a_large_document_is_made_once_until_others_take_its_room() {
        let documents = Documents::new(COMPRESS_FROM + 1_000);
        let made = Arc::new(Mutex::new(Vec::new()));
        for name in ["made-a", "made-b"] {
            let made = Arc::clone(&made);
            let make = move || {
                made.lock().push(name);
                // Incompressible content: the cache has room for one document.
                let mixed = |i: u64| (i ^ (i >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 56;
                let seeds = (0..COMPRESS_FROM as u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                seeds.map(|seed| mixed(seed) as u8).collect()
            };
            documents.offer(name.to_owned(), Arc::new(make));
        }
        for name in ["made-a", "made-a", "made-b", "made-b", "made-a"] {
            assert_eq!(documents.get(name).await.unwrap().len(), COMPRESS_FROM);
        }
        assert_eq!(*made.lock(), ["made-a", "made-b", "made-a"]);
    }

    #[tokio::test]
    async fn what_nobody_names_goes_after_a_while_and_what_is_named_stays() {
        let documents = Documents::default();
        let named = documents.put(b"named");
        documents.name([named.as_str()]);
        let first = documents.put(b"first");
        documents.name([first.as_str()]);
        documents.retire([first.as_str()]);
        assert!(documents.get(&first).await.is_some(), "a facade may be fetching it");
        for i in 0..RETIRED {
            let hash = documents.put(format!("{i}").as_bytes());
            documents.name([hash.as_str(), named.as_str()]);
            documents.retire([hash.as_str(), named.as_str()]);
        }
        assert!(documents.get(&first).await.is_none());
        assert!(documents.get(&named).await.is_some());
    }
}
