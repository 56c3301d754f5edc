//! Cache of compressed documents.

use std::sync::Arc;

use bytes::Bytes;
use indexmap::IndexMap;
use parking_lot::Mutex;

/// Size of the cache in bytes; the oldest documents are evicted first.
const MAX_CACHE_BYTES: usize = 16 << 20;

/// Cache of compressed documents by content hash, with a size limit.
#[derive(Clone, Default)]
pub(crate) struct CompressedCache(Arc<Mutex<CacheEntries>>);

#[derive(Default)]
struct CacheEntries {
    documents: IndexMap<String, Bytes>,
    bytes: usize,
}

impl CompressedCache {
    pub(crate) fn get(&self, hash: &str) -> Option<Bytes> {
        self.0.lock().documents.get(hash).cloned()
    }

    pub(crate) fn put(&self, hash: &str, gzip: &Bytes) {
        let mut cache = self.0.lock();
        if cache.documents.insert(hash.to_owned(), gzip.clone()).is_none() {
            cache.bytes += gzip.len();
        }
        while cache.bytes > MAX_CACHE_BYTES {
            let Some((_, oldest)) = cache.documents.shift_remove_index(0) else { break };
            cache.bytes -= oldest.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_stays_within_its_limit() {
        let cache = CompressedCache::default();
        let document = Bytes::from(vec![0; MAX_CACHE_BYTES / 2]);
        for hash in ["a", "b", "c"] {
            cache.put(hash, &document);
        }
        assert!(cache.get("a").is_none() && cache.get("b").is_some() && cache.get("c").is_some());
    }
}
