//! Why a Service cannot be given what it asks for.

use portico_machinery::field::Error;

/// Why nothing could be allocated.
pub(super) enum Fault {
    /// The writer asks for what cannot be had.
    Invalid(Vec<Error>),
    /// There is nothing left.
    Internal(String),
}
