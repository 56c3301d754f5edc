//! Cleanup when a writer ends.

use std::sync::Arc;

use portico_kit::tasks::TaskSet;
use tokio_util::sync::CancellationToken;

use crate::hub::Hub;

/// Guard of a writer. When the writer ends for any reason, ends all watches and cancels `closed`; a panic ends the process.
pub(crate) struct WriterGuard {
    pub(crate) hub: Arc<Hub>,
    pub(crate) closed: CancellationToken,
    pub(crate) tasks: TaskSet,
}

impl Drop for WriterGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.tasks.fail("store-writer", "panicked");
        }
        self.hub.close();
        self.closed.cancel();
    }
}
