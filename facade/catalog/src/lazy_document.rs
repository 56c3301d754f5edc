//! A document that is built for the first request that needs it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

/// Document that is kept permanently once it is complete, and temporarily if parts are missing. One request builds
/// it; others wait.
#[derive(Debug)]
pub(crate) struct LazyDocument<T> {
    complete: OnceCell<Arc<T>>,
    /// A document with missing parts, and the time at which it was built.
    partial: Mutex<Option<(Instant, Arc<T>)>>,
}

impl<T> Default for LazyDocument<T> {
    fn default() -> Self {
        Self { complete: OnceCell::new(), partial: Mutex::default() }
    }
}

impl<T> LazyDocument<T> {
    /// Returns the document. `build` returns a document and true if it is complete; an incomplete one is used for `partial_ttl`
    /// before it is built again.
    ///
    /// # Errors
    /// Errors of `build`; the next request repeats it.
    pub(crate) async fn get_or_build<E>(
        &self,
        partial_ttl: Duration,
        build: impl Future<Output = Result<(Arc<T>, bool), E>>,
    ) -> Result<Arc<T>, E> {
        if let Some(document) = self.complete.get() {
            return Ok(Arc::clone(document));
        }
        let mut partial = self.partial.lock().await;
        if let Some(document) = self.complete.get() {
            return Ok(Arc::clone(document));
        }
        if let Some((built_at, document)) = &*partial
            && built_at.elapsed() < partial_ttl
        {
            return Ok(Arc::clone(document));
        }
        let (document, is_complete) = build.await?;
        *partial = (!is_complete).then(|| (Instant::now(), Arc::clone(&document)));
        if is_complete {
            // No other request can have set it, because all others wait for the lock.
            let _ = self.complete.set(Arc::clone(&document));
        }
        Ok(document)
    }
}
