//! Limits of JSON patches.

/// Operations in a JSON patch.
///
/// Limit (Requests): 413.
pub const MAX_OPERATIONS: usize = 10_000;

/// Bytes that the `copy` operations of a JSON patch add up to.
///
/// Limit (Requests, bytes): 422.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;
