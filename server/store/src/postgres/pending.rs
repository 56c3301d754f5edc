//! The writes that one group is made of: what was queued when it began, and what came while it waited for its turn.

use tokio::sync::mpsc;

use crate::submit::CommitRequest;
use crate::txn::Prepared;

/// Bytes of values after which no more is taken into a group.
const GROUP_BYTES: usize = 16 << 20;

/// Requests, and beside them what they write: it is checked again with each attempt.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) requests: Vec<CommitRequest>,
    pub(super) txns: Vec<Vec<Prepared>>,
    operations: usize,
    bytes: usize,
}

impl Pending {
    /// One request.
    pub(super) fn new(first: CommitRequest) -> Self {
        let mut pending = Self::default();
        pending.push(first);
        pending
    }

    /// Takes what is queued now, up to so many operations.
    pub(super) fn fill(&mut self, queue: &mut mpsc::Receiver<CommitRequest>, most: usize) {
        while self.operations < most && self.bytes < GROUP_BYTES {
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

    /// Each request by itself.
    pub(super) fn each(self) -> impl Iterator<Item = Self> {
        let all = self.requests.into_iter().zip(self.txns);
        all.map(|(request, txns)| Self::new(CommitRequest { txns, ..request }))
    }
}
