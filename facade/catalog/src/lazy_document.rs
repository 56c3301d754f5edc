//! A document that is made for the first request that asks for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

/// Kept for good once it is complete, and for a while if parts of it are missing. One request makes it; others wait.
#[derive(Debug)]
pub(crate) struct LazyDocument<T> {
    complete: OnceCell<Arc<T>>,
    /// One with parts missing, and when it was made.
    partial: Mutex<Option<(Instant, Arc<T>)>>,
}

impl<T> Default for LazyDocument<T> {
    fn default() -> Self {
        Self { complete: OnceCell::new(), partial: Mutex::default() }
    }
}

impl<T> LazyDocument<T> {
    /// The document. `make` returns it together with whether it is complete; one that is not serves for `partial_life`
    /// before its parts are looked for again.
    ///
    /// # Errors
    /// Returns the errors of `make`; the next request tries again.
    pub(crate) async fn get_or_make<E>(
        &self,
        partial_life: Duration,
        make: impl Future<Output = Result<(Arc<T>, bool), E>>,
    ) -> Result<Arc<T>, E> {
        if let Some(document) = self.complete.get() {
            return Ok(Arc::clone(document));
        }
        let mut partial = self.partial.lock().await;
        if let Some(document) = self.complete.get() {
            return Ok(Arc::clone(document));
        }
        if let Some((made, document)) = &*partial
            && made.elapsed() < partial_life
        {
            return Ok(Arc::clone(document));
        }
        let (document, is_complete) = make.await?;
        *partial = (!is_complete).then(|| (Instant::now(), Arc::clone(&document)));
        if is_complete {
            // No other request can have set it: they wait above.
            let _ = self.complete.set(Arc::clone(&document));
        }
        Ok(document)
    }
}
