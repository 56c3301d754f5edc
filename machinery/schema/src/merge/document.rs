//! The documents of patches: read, refused where they are of another shape, and cut down.

use std::collections::HashSet;

use portico_gostd::json;
use serde_json::{Map, Value};

use super::error::PatchError;
use crate::decode::{Reader, json_name};

/// The JSON of a patch.
pub(super) fn read(patch: &[u8]) -> Result<Value, PatchError> {
    let text = String::from_utf8_lossy(patch);
    let mut reader = Reader::new(&text);
    let value = reader.any().and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| PatchError::Malformed(format!("error decoding patch: {error}")))
}

/// A patch of another shape, in upstream's words.
pub(super) fn mistyped(patch: &Value, expected: &str) -> PatchError {
    let name = json_name(patch);
    PatchError::Malformed(format!(
        "error decoding patch: json: cannot unmarshal {name} into Go value of type {expected}"
    ))
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
