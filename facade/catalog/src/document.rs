//! Where documents come from: by content hash, from wherever the facade keeps or fetches them.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;

/// How many documents are asked for at a time.
const PARALLEL: usize = 16;

/// A document that cannot be had now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("document {hash}: {reason}")]
pub struct DocumentError {
    /// Which.
    pub hash: String,
    /// Why.
    pub reason: String,
}

/// A document on its way.
pub type DocumentFuture<'a> = BoxFuture<'a, Result<Bytes, DocumentError>>;

/// Hands out documents by SHA-256 (lower-case hex). Asked again for the same document, so it keeps what is small.
pub trait DocumentSource: Send + Sync {
    /// The document, uncompressed.
    fn get<'a>(&'a self, hash: &'a str) -> DocumentFuture<'a>;
}

/// All of these documents, in this order, several at a time; an empty hash is nothing.
pub(crate) async fn load(
    source: &dyn DocumentSource,
    hashes: &[Arc<str>],
) -> Vec<Option<Result<Bytes, DocumentError>>> {
    let one = |hash: Arc<str>| async move { load_one(source, &hash).await };
    futures::stream::iter(hashes.iter().cloned()).map(one).buffered(PARALLEL).collect().await
}

/// One document; an empty hash is nothing.
pub(crate) async fn load_one(
    source: &dyn DocumentSource,
    hash: &str,
) -> Option<Result<Bytes, DocumentError>> {
    if hash.is_empty() { None } else { Some(source.get(hash).await) }
}
