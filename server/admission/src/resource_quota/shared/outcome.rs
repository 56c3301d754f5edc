//! Outcome of a shared transaction.

use portico_machinery::Status;
use portico_store::{CommittedTxn, TxnError};

/// Outcome of a transaction.
pub(crate) enum TransactionOutcome {
    Committed(CommittedTxn),
    Failed(TxnError),
    /// A quota could not be encoded.
    Refused(Box<Status>),
    /// The transaction was not executed, because the previous one failed or one of its writers was cancelled.
    Abandoned,
}
