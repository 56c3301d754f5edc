//! Discovery and OpenAPI documents by content hash, which entries of the configuration name.
//!
//! Fetched documents are cached; a missing one is fetched on request. Does not depend on the content of documents.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use parking_lot::RwLock;
use portico_facade_catalog::{DocumentError, DocumentFuture, DocumentSource};
use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_machinery::digest;
use tokio::time::timeout;

use crate::configuration::Configuration;

/// Maximum size in bytes of documents that are cached even if the control service is in this process, where large ones (those
/// of OpenAPI) are fetched for each request.
const MAX_SMALL_BYTES: usize = 16 * 1024;

/// Fetches one document by its hash.
pub type FetchDocument = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Bytes, String>> + Send + Sync>;

/// Cache of documents.
pub struct Documents {
    by_hash: RwLock<HashMap<String, Bytes>>,
    fetch: OnceLock<FetchDocument>,
    /// True if large documents are cached.
    keep_all: bool,
}

/// Bytes that do not have the hash that names them.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the content of document {0} does not match its hash")]
pub struct HashMismatch(pub String);

impl Documents {
    /// Creates an empty cache. If `keep_all`, large documents are cached, so that the facade works without its control service.
    #[must_use]
    pub fn new(keep_all: bool) -> Self {
        Self { by_hash: RwLock::default(), fetch: OnceLock::new(), keep_all }
    }

    /// Sets the function that fetches missing documents; only the first call has an effect.
    pub fn fetch_with(&self, fetch: FetchDocument) {
        let _ = self.fetch.set(fetch);
    }

    /// Returns a cached document.
    #[must_use]
    pub fn cached(&self, hash: &str) -> Option<Bytes> {
        self.by_hash.read().get(hash).cloned()
    }

    /// Adds a document to the cache.
    ///
    /// # Errors
    /// [`HashMismatch`] if the bytes do not hash to `hash`, unless `hash` is the hash of the document's source.
    pub fn insert(&self, hash: &str, bytes: Bytes) -> Result<(), HashMismatch> {
        if !digest::can_identify(hash, &bytes) {
            return Err(HashMismatch(hash.to_owned()));
        }
        if self.keep_all || bytes.len() <= MAX_SMALL_BYTES {
            self.by_hash.write().insert(hash.to_owned(), bytes);
        }
        Ok(())
    }

    /// Removes all documents except these.
    pub fn retain(&self, hashes: &BTreeSet<String>) {
        self.by_hash.write().retain(|hash, _| hashes.contains(hash));
    }

    /// Returns all cached documents.
    #[must_use]
    pub fn all(&self) -> Vec<(String, Bytes)> {
        self.by_hash.read().iter().map(|(hash, bytes)| (hash.clone(), bytes.clone())).collect()
    }

    async fn find_or_fetch(&self, hash: &str) -> Result<Bytes, String> {
        if let Some(bytes) = self.cached(hash) {
            return Ok(bytes);
        }
        let fetch = self.fetch.get().ok_or("not connected to the control service yet")?;
        let bytes = fetch(hash.to_owned()).await?;
        self.insert(hash, bytes.clone()).map_err(|e| e.to_string())?;
        Ok(bytes)
    }

    /// Fetches a missing document and caches it, even if it is large. Returns true if it is cached now.
    async fn fetch_and_insert(&self, hash: &str) -> bool {
        match self.find_or_fetch(hash).await {
            Ok(bytes) => {
                self.by_hash.write().insert(hash.to_owned(), bytes);
                true
            }
            Err(error) => {
                tracing::debug!(error, hash, "cannot fetch a document");
                false
            }
        }
    }
}

impl DocumentSource for Documents {
    fn get<'a>(&'a self, hash: &'a str) -> DocumentFuture<'a> {
        Box::pin(async move {
            self.find_or_fetch(hash).await.map_err(|reason| DocumentError { hash: hash.to_owned(), reason })
        })
    }
}

/// Time within which changes are handled together.
const DEBOUNCE: Duration = Duration::from_millis(500);
/// Backoff between attempts to fetch missing documents.
const RETRY: BackoffPolicy = BackoffPolicy::new(DEBOUNCE, Duration::from_secs(10), 2.0, 0.5);
/// Maximum number of documents fetched in parallel.
const MAX_PARALLEL_FETCHES: usize = 8;

/// After each change: fetches CA bundles that routes wait for, removes documents that no entry names, and fetches missing
/// documents: all of them if all are cached, otherwise those that every client reads first. Failed fetches are retried
/// with backoff and after the next change.
pub async fn follow(configuration: Arc<Configuration>, documents: Arc<Documents>) {
    let mut changed = configuration.subscribe();
    let mut retry = Backoff::new(RETRY);
    while changed.changed().await.is_ok() {
        while !fetch_all(&configuration, &documents).await {
            if timeout(retry.next_wait(), changed.changed()).await.is_ok_and(|change| change.is_err()) {
                return;
            }
        }
        retry.reset();
    }
}

/// Runs one pass. Returns false if a document could not be fetched.
async fn fetch_all(configuration: &Configuration, documents: &Documents) -> bool {
    let complete = fetch_bundles(configuration, documents).await;
    // A change from here on starts another pass.
    tokio::time::sleep(DEBOUNCE).await;
    let apis = Arc::clone(&configuration.active.load().apis);
    let referenced = apis.documents();
    documents.retain(&referenced);
    let to_fetch = if documents.keep_all { referenced } else { apis.discovery_documents() };
    fetch_missing(&to_fetch, configuration, documents).await && complete
}

async fn fetch_bundles(configuration: &Configuration, documents: &Documents) -> bool {
    let mut complete = true;
    for hash in configuration.missing_bundles() {
        match documents.get(&hash).await {
            Ok(pem) => configuration.insert_bundle(&hash, pem),
            Err(error) => {
                tracing::debug!(%error, "cannot fetch a CA bundle, retrying");
                complete = false;
            }
        }
    }
    complete
}

async fn fetch_missing(
    hashes: &BTreeSet<String>,
    configuration: &Configuration,
    documents: &Documents,
) -> bool {
    let missing: Vec<String> =
        hashes.iter().filter(|hash| documents.cached(hash).is_none()).cloned().collect();
    let fetch = |hash: String| async move { documents.fetch_and_insert(&hash).await };
    let fetched = futures::stream::iter(missing).map(fetch).buffer_unordered(MAX_PARALLEL_FETCHES);
    let combine = |(complete, any_fetched), is_fetched| {
        std::future::ready((complete && is_fetched, any_fetched || is_fetched))
    };
    let (complete, has_fetched) = fetched.fold((true, false), combine).await;
    // With `keep_all`, the state on disk (fail-static) contains the documents and is written again.
    if has_fetched && documents.keep_all {
        configuration.on_documents_fetched();
    }
    complete
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_document_is_kept_only_under_its_own_hash_and_fetched_when_missing() {
        let documents = Documents::new(true);
        let hash = digest::sha256_hex(b"x");
        assert_eq!(documents.insert("00", "x".into()), Err(HashMismatch("00".into())));
        assert!(documents.get(&hash).await.is_err());
        documents.fetch_with(Arc::new(|_| Box::pin(async { Ok(Bytes::from_static(b"x")) })));
        assert_eq!(documents.get(&hash).await.unwrap(), "x");
        assert_eq!(documents.cached(&hash).unwrap(), "x");
        assert!(documents.get("00").await.is_err());
        documents.retain(&BTreeSet::new());
        assert!(documents.cached(&hash).is_none());
    }
}
