//! Documents by content hash, which the facade caches or fetches.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;

/// Maximum number of documents that are loaded in parallel.
const MAX_PARALLEL_LOADS: usize = 16;

/// Error of a document that is not available at the moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("document {hash}: {reason}")]
pub struct DocumentError {
    /// Hash of the document.
    pub hash: String,
    /// Reason of the failure.
    pub reason: String,
}

/// Future of a document.
pub type DocumentFuture<'a> = BoxFuture<'a, Result<Bytes, DocumentError>>;

/// Source of documents by SHA-256 (lower-case hex). The same document is requested repeatedly, so small ones should be cached.
pub trait DocumentSource: Send + Sync {
    /// Returns the uncompressed document.
    fn get<'a>(&'a self, hash: &'a str) -> DocumentFuture<'a>;
}

/// Loads documents in parallel and returns them in this order; `None` for an empty hash.
pub(crate) async fn load(
    source: &dyn DocumentSource,
    hashes: &[Arc<str>],
) -> Vec<Option<Result<Bytes, DocumentError>>> {
    let load_document = |hash: Arc<str>| async move { load_one(source, &hash).await };
    futures::stream::iter(hashes.iter().cloned())
        .map(load_document)
        .buffered(MAX_PARALLEL_LOADS)
        .collect()
        .await
}

/// Loads one document; `None` for an empty hash.
pub(crate) async fn load_one(
    source: &dyn DocumentSource,
    hash: &str,
) -> Option<Result<Bytes, DocumentError>> {
    if hash.is_empty() { None } else { Some(source.get(hash).await) }
}
