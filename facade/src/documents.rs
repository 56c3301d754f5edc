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
use portico_kit::backoff::{Backoff, Policy};
use portico_machinery::digest;
use tokio::time::timeout;

use crate::configuration::Configuration;

/// Maximum size in bytes of documents that are cached even if the control service is in this process, where large ones (those
/// of OpenAPI) are fetched for each request.
const SMALL: usize = 16 * 1024;

/// Fetches one document by its hash.
pub type Fetch = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Bytes, String>> + Send + Sync>;

/// Cache of documents.
pub struct Documents {
    by_hash: RwLock<HashMap<String, Bytes>>,
    fetch: OnceLock<Fetch>,
    /// True if large documents are cached.
    keep_all: bool,
}

/// Bytes that do not have the hash that names them.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the content of document {0} does not match its hash")]
pub struct WrongContent(pub String);

impl Documents {
    /// Creates an empty cache. If `keep_all`, large documents are cached, so that the facade works without its control service.
    #[must_use]
    pub fn new(keep_all: bool) -> Self {
        Self { by_hash: RwLock::default(), fetch: OnceLock::new(), keep_all }
    }

    /// Sets the function that fetches missing documents; only the first call has an effect.
    pub fn fetch_with(&self, fetch: Fetch) {
        let _ = self.fetch.set(fetch);
    }

    /// Returns a cached document.
    #[must_use]
    pub fn held(&self, hash: &str) -> Option<Bytes> {
        self.by_hash.read().get(hash).cloned()
    }

    /// Adds a document to the cache.
    ///
    /// # Errors
    /// [`HashMismatch`] if the bytes do not hash to `hash`, unless `hash` is the hash of the document's source.
    pub fn insert(&self, hash: &str, bytes: Bytes) -> Result<(), WrongContent> {
        if !digest::may_be(hash, &bytes) {
            return Err(WrongContent(hash.to_owned()));
        }
        if self.keep_all || bytes.len() <= SMALL {
            self.by_hash.write().insert(hash.to_owned(), bytes);
        }
        Ok(())
    }

    /// Removes all documents except these.
    pub fn retain(&self, wanted: &BTreeSet<String>) {
        self.by_hash.write().retain(|hash, _| wanted.contains(hash));
    }

    /// Returns all cached documents.
    #[must_use]
    pub fn all(&self) -> Vec<(String, Bytes)> {
        self.by_hash.read().iter().map(|(hash, bytes)| (hash.clone(), bytes.clone())).collect()
    }

    async fn find(&self, hash: &str) -> Result<Bytes, String> {
        if let Some(bytes) = self.held(hash) {
            return Ok(bytes);
        }
        let fetch = self.fetch.get().ok_or("not connected to the control service yet")?;
        let bytes = fetch(hash.to_owned()).await?;
        self.insert(hash, bytes.clone()).map_err(|e| e.to_string())?;
        Ok(bytes)
    }

    /// Fetches a missing document and caches it, even if it is large. Returns true if it is cached now.
    async fn bring(&self, hash: &str) -> bool {
        match self.find(hash).await {
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
            self.find(hash).await.map_err(|reason| DocumentError { hash: hash.to_owned(), reason })
        })
    }
}

/// Time within which changes are handled together.
const PAUSE: Duration = Duration::from_millis(500);
/// Backoff between attempts to fetch missing documents.
const RETRY: Policy = Policy::new(PAUSE, Duration::from_secs(10), 2.0, 0.5);
/// Maximum number of documents fetched in parallel.
const PARALLEL: usize = 8;

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
    let complete = bundles(configuration, documents).await;
    // A change from here on starts another pass.
    tokio::time::sleep(PAUSE).await;
    let apis = Arc::clone(&configuration.current.load().apis);
    let wanted = apis.documents();
    documents.retain(&wanted);
    let first = if documents.keep_all { wanted } else { apis.discovery_documents() };
    fetch_missing(&first, configuration, documents).await && complete
}

async fn bundles(configuration: &Configuration, documents: &Documents) -> bool {
    let mut complete = true;
    for hash in configuration.missing_bundles() {
        match documents.get(&hash).await {
            Ok(pem) => configuration.bundle_came(&hash, pem),
            Err(error) => {
                tracing::debug!(%error, "cannot fetch a CA bundle, retrying");
                complete = false;
            }
        }
    }
    complete
}

async fn fetch_missing(
    wanted: &BTreeSet<String>,
    configuration: &Configuration,
    documents: &Documents,
) -> bool {
    let missing: Vec<String> = wanted.iter().filter(|hash| documents.held(hash).is_none()).cloned().collect();
    let fetch = |hash: String| async move { documents.bring(&hash).await };
    let fetched = futures::stream::iter(missing).map(fetch).buffer_unordered(PARALLEL);
    let outcome = |(complete, came), here| std::future::ready((complete && here, came || here));
    let (complete, came) = fetched.fold((true, false), outcome).await;
    // Documents that are not cached for times without a control service are not saved.
    if came && documents.keep_all {
        configuration.documents_came();
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
        assert_eq!(documents.insert("00", "x".into()), Err(WrongContent("00".into())));
        assert!(documents.get(&hash).await.is_err());
        documents.fetch_with(Arc::new(|_| Box::pin(async { Ok(Bytes::from_static(b"x")) })));
        assert_eq!(documents.get(&hash).await.unwrap(), "x");
        assert_eq!(documents.held(&hash).unwrap(), "x");
        assert!(documents.get("00").await.is_err());
        documents.retain(&BTreeSet::new());
        assert!(documents.held(&hash).is_none());
    }
}
