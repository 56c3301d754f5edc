//! How a shared transaction has ended.

use portico_machinery::Status;
use portico_store::{Committed, TxnError};

/// How a transaction has ended.
pub(crate) enum Outcome {
    Committed(Committed),
    Failed(TxnError),
    /// A quota could not be encoded.
    Refused(Box<Status>),
    /// It was never tried: the one before has failed, or one of its writers has gone away.
    Abandoned,
}
