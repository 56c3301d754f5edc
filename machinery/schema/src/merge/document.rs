//! Documents of patches: parsing, errors for documents of a wrong type, and removal of members.

use std::collections::HashSet;

use portico_gostd::json;
use serde_json::{Map, Value};

use super::error::PatchError;
use crate::decode::{Reader, SyntaxError, json_type_name};

/// Parses a JSON patch or a merge patch.
pub(super) fn parse_patch(patch: &[u8]) -> Result<Value, PatchError> {
    parse(patch).map_err(|error| PatchError::Malformed(format!("error decoding patch: {error}")))
}

/// Returns upstream's error for a patch of a wrong JSON type.
pub(super) fn patch_type_error(patch: &Value, expected: &str) -> PatchError {
    PatchError::Malformed(format!("error decoding patch: {}", type_error(patch, expected)))
}

/// Parses a strategic merge patch, whose errors upstream reports without a prefix. Null is an empty patch.
pub(super) fn parse_strategic_patch(patch: &[u8]) -> Result<Map<String, Value>, PatchError> {
    match parse(patch).map_err(|error| PatchError::Malformed(error.to_string()))? {
        Value::Object(patch) => Ok(patch),
        Value::Null => Ok(Map::new()),
        other => Err(PatchError::Malformed(type_error(&other, "map[string]interface {}"))),
    }
}

fn parse(patch: &[u8]) -> Result<Value, SyntaxError> {
    let text = String::from_utf8_lossy(patch);
    let mut reader = Reader::new(&text);
    reader.any().and_then(|value| reader.end().map(|()| value))
}

fn type_error(value: &Value, expected: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {expected}", json_type_name(value))
}

/// Removes keys in one pass and preserves the order of the remaining ones.
pub(super) fn remove_all(map: &mut Map<String, Value>, keys: &HashSet<String>) {
    if !keys.is_empty() {
        map.retain(|key, _| !keys.contains(key));
    }
}

/// Removes the nulls of maps at all levels; nulls in lists stay.
pub(super) fn drop_nulls_of_maps(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls_of_maps);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls_of_maps),
        _ => {}
    }
}

/// Returns the Go type of a value as upstream prints it in errors of patches.
pub(super) fn go_type(value: &Value) -> &'static str {
    if value.is_null() { "%!s(<nil>)" } else { json::go_type(value) }
}
