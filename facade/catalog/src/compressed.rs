//! Cache of compressed documents.

use std::sync::Arc;

use bytes::Bytes;
use indexmap::IndexMap;
use parking_lot::Mutex;

/// Size of the cache in bytes; the oldest documents are evicted first.
const KEPT_BYTES: usize = 16 << 20;

/// Cache of compressed documents by content hash, with a size limit.
#[derive(Clone, Default)]
pub(crate) struct Compressed(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    documents: IndexMap<String, Bytes>,
    bytes: usize,
}

impl Compressed {
    pub(crate) fn get(&self, hash: &str) -> Option<Bytes> {
        self.0.lock().documents.get(hash).cloned()
    }

    pub(crate) fn put(&self, hash: &str, gzip: &Bytes) {
        let mut kept = self.0.lock();
        if kept.documents.insert(hash.to_owned(), gzip.clone()).is_none() {
            kept.bytes += gzip.len();
        }
        while kept.bytes > KEPT_BYTES {
            let Some((_, oldest)) = kept.documents.shift_remove_index(0) else { break };
            kept.bytes -= oldest.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_documents_stay_within_their_bound() {
        let kept = Compressed::default();
        let big = Bytes::from(vec![0; KEPT_BYTES / 2]);
        for hash in ["a", "b", "c"] {
            kept.put(hash, &big);
        }
        assert!(kept.get("a").is_none() && kept.get("b").is_some() && kept.get("c").is_some());
    }
}
