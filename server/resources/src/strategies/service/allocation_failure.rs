//! Failures of the allocation of addresses and node ports.

use portico_machinery::field::Error;

/// Failure of an allocation for a Service.
pub(super) enum AllocationFailure {
    /// The request is invalid.
    Invalid(Vec<Error>),
    /// No address or port is free.
    Internal(String),
}
