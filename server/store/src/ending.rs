//! What follows the end of a writer.

use std::sync::Arc;

use portico_kit::tasks::TaskSet;
use tokio_util::sync::CancellationToken;

use crate::hub::Hub;

/// However the writer ends, watches end with it and whoever waits for the end learns of it; a panic ends the process.
pub(crate) struct Ending {
    pub(crate) hub: Arc<Hub>,
    pub(crate) closed: CancellationToken,
    pub(crate) tasks: TaskSet,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.tasks.fail("store-writer", "panicked");
        }
        self.hub.close();
        self.closed.cancel();
    }
}
