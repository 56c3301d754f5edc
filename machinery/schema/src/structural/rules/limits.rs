//! What rules may cost.

/// The most that one evaluation may cost.
pub(super) const MAX_PER_CALL: u64 = 1_000_000;

/// The most that all evaluations over one object may cost.
pub const MAX_PER_OBJECT: i64 = 10_000_000;

/// The most bytes of a request: what bounds what a schema leaves unbounded.
pub(super) const MAX_REQUEST_BYTES: u64 = 3 * 1024 * 1024;
