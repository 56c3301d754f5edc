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
const MIN_COMPRESSED_SIZE: usize = 8 * 1024;
/// Number of documents kept after the last entry that named them is gone, because a facade may be fetching them.
const MAX_RETIRED: usize = 256;
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
    documents: HashMap<String, StoredDocument>,
    /// Number of entries that name a document.
    references: HashMap<String, usize>,
    retired: VecDeque<String>,
    bytes: usize,
    generated: GeneratedDocuments,
}

#[derive(Clone)]
enum StoredDocument {
    Plain(Bytes),
    Compressed(Bytes, usize),
    /// Generated on request. Small documents are generated each time, because facades cache them.
    Recipe(Recipe),
}

/// Cache of large generated documents, compressed. The least recently used are evicted.
#[derive(Default)]
struct GeneratedDocuments {
    documents: IndexMap<String, StoredDocument>,
    bytes: usize,
    limit: usize,
}

impl GeneratedDocuments {
    fn get(&mut self, name: &str) -> Option<StoredDocument> {
        let document = self.documents.shift_remove(name)?;
        self.documents.insert(name.to_owned(), document.clone());
        Some(document)
    }

    fn put(&mut self, name: &str, document: StoredDocument) {
        self.remove(name);
        self.bytes += document.size();
        self.documents.insert(name.to_owned(), document);
        while self.bytes > self.limit {
            let Some((_, oldest)) = self.documents.shift_remove_index(0) else { break };
            self.bytes -= oldest.size();
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some(removed) = self.documents.shift_remove(name) {
            self.bytes -= removed.size();
        }
    }
}

impl StoredDocument {
    fn new(bytes: &[u8]) -> Self {
        if bytes.len() < MIN_COMPRESSED_SIZE {
            return Self::Plain(Bytes::copy_from_slice(bytes));
        }
        let mut encoder = DeflateEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::default());
        // Writing to memory cannot fail; if it did, the document would be stored uncompressed.
        match encoder.write_all(bytes).and_then(|()| encoder.finish()) {
            Ok(compressed) => Self::Compressed(Bytes::from(compressed.into_boxed_slice()), bytes.len()),
            Err(_) => Self::Plain(Bytes::copy_from_slice(bytes)),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Plain(bytes) | Self::Compressed(bytes, _) => bytes.len(),
            Self::Recipe(_) => 0,
        }
    }

    fn decompress(&self) -> Option<Bytes> {
        match self {
            Self::Plain(bytes) => Some(bytes.clone()),
            Self::Recipe(make) => Some(make().into()),
            Self::Compressed(compressed, length) => {
                let mut bytes = Vec::with_capacity(*length);
                DeflateDecoder::new(&compressed[..]).read_to_end(&mut bytes).ok()?;
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
    pub(crate) fn new(cache_bytes: usize) -> Self {
        let generated = GeneratedDocuments { limit: cache_bytes, ..GeneratedDocuments::default() };
        Self(Arc::new(Mutex::new(Store { generated, ..Store::default() })))
    }

    /// Stores a document and returns its hash; an empty string if the store is full.
    #[must_use]
    pub(crate) fn put(&self, bytes: &[u8]) -> String {
        let hash = sha256_hex(bytes);
        if self.0.lock().documents.contains_key(&hash) {
            return hash;
        }
        let document = StoredDocument::new(bytes);
        let mut store = self.0.lock();
        if store.bytes + document.size() > LIMIT {
            tracing::warn!(size = document.size(), limit = LIMIT, "document store is full, document skipped");
            return String::new();
        }
        store.bytes += document.size();
        if let Some(replaced) = store.documents.insert(hash.clone(), document) {
            store.bytes -= replaced.size();
        }
        hash
    }

    /// Stores a recipe under a name that identifies the inputs of the document.
    pub(crate) fn offer(&self, name: String, make: Recipe) -> String {
        self.0.lock().documents.insert(name.clone(), StoredDocument::Recipe(make));
        name
    }

    /// Adds references of an entry to documents.
    pub(crate) fn add_references<'a>(&self, hashes: impl IntoIterator<Item = &'a str>) {
        let mut store = self.0.lock();
        for hash in hashes {
            *store.references.entry(hash.to_owned()).or_default() += 1;
        }
    }

    /// Removes references of an entry. Documents without references are deleted after some time.
    pub(crate) fn remove_references<'a>(&self, hashes: impl IntoIterator<Item = &'a str>) {
        let mut store = self.0.lock();
        for hash in hashes {
            match store.references.get_mut(hash) {
                Some(count) if *count > 1 => *count -= 1,
                _ => {
                    store.references.remove(hash);
                    store.retired.push_back(hash.to_owned());
                }
            }
        }
        while store.retired.len() > MAX_RETIRED {
            let Some(oldest) = store.retired.pop_front() else { break };
            if store.references.contains_key(&oldest) {
                continue;
            }
            if let Some(removed) = store.documents.remove(&oldest) {
                store.bytes -= removed.size();
            }
            store.generated.remove(&oldest);
        }
    }

    /// Returns a document, if an entry names it.
    pub async fn get(&self, hash: &str) -> Option<Bytes> {
        match self.find(hash)? {
            StoredDocument::Recipe(make) => {
                let bytes = make();
                if bytes.len() >= MIN_COMPRESSED_SIZE {
                    let document = StoredDocument::new(&bytes);
                    self.0.lock().generated.put(hash, document);
                }
                Some(bytes.into())
            }
            document => document.decompress(),
        }
    }

    /// Returns the stored form; a recipe only if the document is not cached.
    fn find(&self, hash: &str) -> Option<StoredDocument> {
        let mut store = self.0.lock();
        match store.documents.get(hash)?.clone() {
            StoredDocument::Recipe(make) => {
                Some(store.generated.get(hash).unwrap_or(StoredDocument::Recipe(make)))
            }
            document => Some(document),
        }
    }

    /// Returns the number of documents and their total size in bytes.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let store = self.0.lock();
        (store.documents.len(), store.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn documents_of_all_sizes_are_found_by_hash() {
        let documents = Documents::default();
        for size in [0, 10, MIN_COMPRESSED_SIZE, 200_000] {
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
    async fn an_offered_document_is_generated_on_request() {
        let documents = Documents::default();
        let name = documents.offer("made-x".to_owned(), Arc::new(|| b"fresh".to_vec()));
        assert_eq!(documents.get(&name).await.unwrap(), "fresh");
        assert_eq!(documents.size(), (1, 0));
    }

    #[tokio::test]
    async fn a_large_document_is_generated_once_until_it_is_evicted() {
        let documents = Documents::new(MIN_COMPRESSED_SIZE + 1_000);
        let generated = Arc::new(Mutex::new(Vec::new()));
        for name in ["made-a", "made-b"] {
            let made = Arc::clone(&generated);
            let make = move || {
                made.lock().push(name);
                // Incompressible content: the cache has room for one document.
                let pseudo_random = |i: u64| (i ^ (i >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 56;
                let seeds = (0..MIN_COMPRESSED_SIZE as u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                seeds.map(|seed| pseudo_random(seed) as u8).collect()
            };
            documents.offer(name.to_owned(), Arc::new(make));
        }
        for name in ["made-a", "made-a", "made-b", "made-b", "made-a"] {
            assert_eq!(documents.get(name).await.unwrap().len(), MIN_COMPRESSED_SIZE);
        }
        assert_eq!(*generated.lock(), ["made-a", "made-b", "made-a"]);
    }

    #[tokio::test]
    async fn unreferenced_documents_are_deleted_after_some_time_and_referenced_ones_stay() {
        let documents = Documents::default();
        let referenced = documents.put(b"named");
        documents.add_references([referenced.as_str()]);
        let first = documents.put(b"first");
        documents.add_references([first.as_str()]);
        documents.remove_references([first.as_str()]);
        assert!(documents.get(&first).await.is_some(), "a facade may be fetching it");
        for i in 0..MAX_RETIRED {
            let hash = documents.put(format!("{i}").as_bytes());
            documents.add_references([hash.as_str(), referenced.as_str()]);
            documents.remove_references([hash.as_str(), referenced.as_str()]);
        }
        assert!(documents.get(&first).await.is_none());
        assert!(documents.get(&referenced).await.is_some());
    }
}
