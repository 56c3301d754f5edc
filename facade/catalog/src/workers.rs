//! Threads that parse, hash, encode and compress documents.

use std::sync::Arc;

use portico_kit::offload::Offload;
use portico_machinery::Status;

/// Size of a discovery or OpenAPI document that a serving thread of a facade parses, hashes, encodes or compresses.
///
/// The limit corresponds to about a millisecond of work.
///
/// Limit (Requests, bytes): the threads for long work do it.
const MAX_INLINE_BYTES: usize = 64 * 1024;

/// Threads for long work.
pub(crate) struct Workers(Arc<Offload>);

impl Workers {
    pub fn new(offload: Arc<Offload>) -> Self {
        Self(offload)
    }

    /// Runs work on `bytes` bytes of documents, outside of the serving threads if it is large. The work must not wait: documents
    /// are fetched before.
    ///
    /// # Errors
    /// 500 if the work panics or the process ends.
    pub async fn compute<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Box<Status>> {
        if bytes <= MAX_INLINE_BYTES {
            return Ok(work());
        }
        let unfinished = || Box::new(Status::internal("building the document was interrupted"));
        self.0.run_light("document", async move { work() }).await.ok_or_else(unfinished)
    }
}
