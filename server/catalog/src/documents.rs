//! Documents by content hash: what entries name can be had here, for as long as they name it and a little longer.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use parking_lot::Mutex;
use portico_machinery::digest::sha256_hex;

/// From this size on documents are kept compressed.
const COMPRESS_FROM: usize = 8 * 1024;
/// Documents that no entry names any longer and that a facade may be fetching just now. The oldest goes first.
const RETIRED: usize = 64;
/// Documents of backends together, as kept. A new document beyond that is refused.
const LIMIT: usize = 256 << 20;

/// Makes a document that is a function of what its name says.
pub(crate) type Recipe = Arc<dyn Fn() -> Vec<u8> + Send + Sync>;

/// The store. One per control service; clones share it.
#[derive(Clone, Default)]
pub struct Documents(Arc<Mutex<Store>>);

#[derive(Default)]
struct Store {
    kept: HashMap<String, Kept>,
    /// How many entries name a document.
    named: HashMap<String, usize>,
    retired: VecDeque<String>,
    bytes: usize,
}

#[derive(Clone)]
enum Kept {
    Plain(Bytes),
    Deflated(Bytes, usize),
    /// Made whenever it is asked for: facades keep what they get.
    Recipe(Recipe),
}

impl Kept {
    fn new(bytes: &[u8]) -> Self {
        if bytes.len() < COMPRESS_FROM {
            return Self::Plain(Bytes::copy_from_slice(bytes));
        }
        let mut encoder = DeflateEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::default());
        // Writing to memory does not fail; were it to, the document is kept as it is.
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
    /// Keeps a document and tells its hash; empty when the store is full.
    #[must_use]
    pub(crate) fn put(&self, bytes: &[u8]) -> String {
        let hash = sha256_hex(bytes);
        if self.0.lock().kept.contains_key(&hash) {
            return hash;
        }
        let kept = Kept::new(bytes);
        let mut store = self.0.lock();
        if store.bytes + kept.size() > LIMIT {
            tracing::warn!(
                size = kept.size(),
                limit = LIMIT,
                "the document store is full: a document is left out"
            );
            return String::new();
        }
        store.bytes += kept.size();
        if let Some(twin) = store.kept.insert(hash.clone(), kept) {
            store.bytes -= twin.size();
        }
        hash
    }

    /// Keeps how to make a document, under the name of what it is made of.
    pub(crate) fn offer(&self, name: String, make: Recipe) -> String {
        self.0.lock().kept.insert(name.clone(), Kept::Recipe(make));
        name
    }

    /// An entry names these from now on.
    pub(crate) fn name<'a>(&self, hashes: impl IntoIterator<Item = &'a str>) {
        let mut store = self.0.lock();
        for hash in hashes {
            *store.named.entry(hash.to_owned()).or_default() += 1;
        }
    }

    /// An entry that named these is gone or changed: what no other one names goes after a while.
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
        }
    }

    /// The document, when an entry names it.
    pub async fn get(&self, hash: &str) -> Option<Bytes> {
        let kept = self.0.lock().kept.get(hash).cloned()?;
        kept.open()
    }

    /// How many documents there are and how many bytes they take.
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
