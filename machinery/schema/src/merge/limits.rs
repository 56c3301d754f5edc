//! What a JSON patch may ask for.

/// The most operations that a JSON patch may have; more is 413.
pub const MAX_OPERATIONS: usize = 10_000;

/// The most bytes that a JSON patch's `copy` operations may add up to; more is 422.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;
