//! What the writer is asked to do.

use tokio::sync::oneshot;

use super::maintenance::Maintenance;
use crate::txn::{Committed, Prepared, TxnError};

/// The results of a request's Txns, in their order.
pub(crate) type Results = Vec<Result<Committed, TxnError>>;

/// What the writer is asked to do.
pub(crate) enum Request {
    /// Transactions, at most a group's worth.
    Commit(CommitRequest),
    /// A small step of compaction or of giving back pages; between two of them commits have their turn.
    Maintain(Maintenance),
}

pub(crate) struct CommitRequest {
    pub(crate) txns: Vec<Prepared>,
    pub(crate) reply: oneshot::Sender<Results>,
}
