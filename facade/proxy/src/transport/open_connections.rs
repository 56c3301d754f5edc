//! Number of open connections to one address.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counter of open connections. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenConnections(Arc<AtomicUsize>);

/// Guard that counts one connection.
pub(super) struct OpenConnection(OpenConnections);

impl OpenConnections {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn track(&self) -> OpenConnection {
        self.0.fetch_add(1, Ordering::Relaxed);
        OpenConnection(self.clone())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
