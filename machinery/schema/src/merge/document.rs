//! The documents of patches: read, refused where they are of another shape, and cut down.

use std::collections::HashSet;

use portico_gostd::json;
use serde_json::{Map, Value};

use super::error::PatchError;
use crate::decode::{Reader, SyntaxError, json_name};

/// The JSON of a patch of operations or of a merge patch.
pub(super) fn read(patch: &[u8]) -> Result<Value, PatchError> {
    parse(patch).map_err(|error| PatchError::Malformed(format!("error decoding patch: {error}")))
}

/// A patch of another shape, in upstream's words.
pub(super) fn mistyped(patch: &Value, expected: &str) -> PatchError {
    PatchError::Malformed(format!("error decoding patch: {}", type_error(patch, expected)))
}

/// The JSON of a strategic merge patch, whose errors upstream reports without a prefix; null is an empty patch.
pub(super) fn read_strategic(patch: &[u8]) -> Result<Map<String, Value>, PatchError> {
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
    format!("json: cannot unmarshal {} into Go value of type {expected}", json_name(value))
}

/// Removes keys in one walk, the order of the others kept.
pub(super) fn remove_all(map: &mut Map<String, Value>, keys: &HashSet<String>) {
    if !keys.is_empty() {
        map.retain(|key, _| !keys.contains(key));
    }
}

/// Drops the nulls of maps, wherever they stand; those that are elements stay.
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

/// The type that Go holds a value in, as upstream prints that of a patch.
pub(super) fn go_type(value: &Value) -> &'static str {
    if value.is_null() { "%!s(<nil>)" } else { json::go_type(value) }
}
