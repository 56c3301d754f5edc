//! Cost limits of rules.

/// Cost of one evaluation of a validation rule.
///
/// Limit (Expressions, cost units): 422, and no further rule runs.
pub(super) const MAX_PER_CALL: u64 = 1_000_000;

/// Cost of all evaluations of validation rules for one object.
///
/// Limit (Expressions, cost units): 422, and no further rule runs.
pub const MAX_PER_OBJECT: i64 = 10_000_000;

/// Maximum bytes of a request, the bound of sizes that a schema does not limit.
pub(super) const MAX_REQUEST_BYTES: u64 = 3 * 1024 * 1024;
