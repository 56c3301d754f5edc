//! Writes of one group: the requests queued when it began, and those that arrived while it waited for the lock.

use tokio::sync::mpsc;

use crate::submit::CommitRequest;
use crate::txn::PreparedTxn;

/// Size of values in bytes after which a group accepts no more requests.
const GROUP_BYTES: usize = 16 << 20;

/// Requests with their Txns, which are validated again in each attempt.
#[derive(Default)]
pub(super) struct PendingGroup {
    pub(super) requests: Vec<CommitRequest>,
    pub(super) txns: Vec<Vec<PreparedTxn>>,
    operations: usize,
    bytes: usize,
}

impl PendingGroup {
    /// Creates a group with one request.
    pub(super) fn new(first: CommitRequest) -> Self {
        let mut pending = Self::default();
        pending.push(first);
        pending
    }

    /// Adds queued requests up to this number of operations.
    pub(super) fn fill(&mut self, queue: &mut mpsc::Receiver<CommitRequest>, max_operations: usize) {
        while self.operations < max_operations && self.bytes < GROUP_BYTES {
            let Ok(next) = queue.try_recv() else { return };
            self.push(next);
        }
    }

    fn push(&mut self, mut request: CommitRequest) {
        self.operations += request.operations();
        self.bytes += request.bytes();
        self.txns.push(std::mem::take(&mut request.txns));
        self.requests.push(request);
    }

    /// Splits the group into one group per request.
    pub(super) fn split(self) -> impl Iterator<Item = Self> {
        let pairs = self.requests.into_iter().zip(self.txns);
        pairs.map(|(request, txns)| Self::new(CommitRequest { txns, ..request }))
    }
}
