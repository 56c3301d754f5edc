//! Patches: JSON patch (RFC 6902), merge patch (RFC 7396), strategic merge patch; all with upstream's limits.

mod container;
mod directive;
mod document;
mod element_order;
mod error;
mod json_patch;
mod limits;
mod lists;
pub mod printed;
mod strategic;

pub use error::PatchError;
pub use limits::{MAX_COPIED_BYTES, MAX_OPERATIONS};

use std::collections::HashSet;

use portico_machinery::Object;
use serde_json::{Map, Value};

use self::document::{drop_nulls_of_maps, parse_patch, parse_strategic_patch, patch_type_error, remove_all};
use crate::structural::parse_body;
use crate::typed::Typed;

/// Applies a JSON patch. As upstream: `replace` of a missing map key adds it, negative indices count from the end.
///
/// # Errors
/// [`PatchError`]; [`PatchError::status`] is the response for it.
pub fn json_patch(current: &Object, patch: &[u8]) -> Result<Object, PatchError> {
    let mut document = Value::Object(current.map().clone());
    json_patch::apply(&mut document, patch)?;
    match document {
        Value::Object(map) => Ok(Object::from_map(map)),
        _ => Err(PatchError::Failed("the result is not an object".to_owned())),
    }
}

/// True if a JSON patch has no operations: an empty list, or null. Does not parse the operations of other patches.
///
/// # Errors
/// [`PatchError::Malformed`] if it is not a list.
pub fn is_empty_json_patch(patch: &[u8]) -> Result<bool, PatchError> {
    let mut significant = patch.iter().filter(|byte| !byte.is_ascii_whitespace());
    if significant.next() == Some(&b'[') && significant.next() != Some(&b']') {
        return Ok(false);
    }
    match parse_patch(patch)? {
        Value::Null => Ok(true),
        Value::Array(operations) => Ok(operations.is_empty()),
        other => Err(patch_type_error(&other, "jsonpatch.Patch")),
    }
}

/// Applies a merge patch: null deletes, maps merge, everything else replaces.
///
/// # Errors
/// [`PatchError`]; [`PatchError::status`] is the response for it.
pub fn merge_patch(current: &Object, patch: &[u8]) -> Result<Object, PatchError> {
    let patch = match parse_patch(patch)? {
        Value::Object(patch) => patch,
        Value::Null => return Err(PatchError::Malformed("Invalid JSON Patch".to_owned())),
        other => return Err(patch_type_error(&other, "map[string]interface {}")),
    };
    let mut map = current.map().clone();
    merge_into(&mut map, patch);
    Ok(Object::from_map(map))
}

/// Merges maps according to RFC 7396. Deletes keys together, because deleting each one separately would shift all later keys.
fn merge_into(map: &mut Map<String, Value>, patch: Map<String, Value>) {
    let mut deleted = HashSet::new();
    for (key, value) in patch {
        match value {
            Value::Null => {
                if map.contains_key(&key) {
                    deleted.insert(key);
                }
            }
            Value::Object(child) => {
                let slot = map.entry(key).or_insert(Value::Null);
                if !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                if let Value::Object(into) = slot {
                    merge_into(into, child);
                }
            }
            mut other => {
                drop_nulls_of_maps(&mut other);
                map.insert(key, other);
            }
        }
    }
    remove_all(map, &deleted);
}

/// Returns the strict errors of the text of a patch, which is a JSON patch if `is_json_patch`, otherwise a merge patch:
/// duplicate members, and unknown members of operations. Returns none if the patch cannot be parsed, which is another error.
#[must_use]
pub fn diagnostics(patch: &[u8], is_json_patch: bool) -> Vec<String> {
    let Ok(body) = parse_body(&String::from_utf8_lossy(patch)) else { return Vec::new() };
    if is_json_patch { json_patch::diagnostics(&body.value, &body.duplicates) } else { body.duplicates }
}

/// Applies a strategic merge patch according to a schema.
pub(crate) fn strategic_merge(schema: &Typed, current: &Object, patch: &[u8]) -> Result<Object, PatchError> {
    let patch = parse_strategic_patch(patch)?;
    let map = strategic::merge_struct(schema.types(), schema.root(), current.map().clone(), patch)?;
    Ok(Object::from_map(map))
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
