//! The `$patch` directive, and common parts of strategic merge patches.

use portico_machinery::object::{GoValue, cut};
use serde_json::{Map, Value};

use super::error::PatchError;

const PATCH: &str = "$patch";

pub(super) type Json = Map<String, Value>;

pub(super) type Result<T> = std::result::Result<T, PatchError>;

/// Operation that a directive requests for the map or list element that contains it.
pub(super) enum Directive {
    Replace,
    Delete,
}

/// Removes the `$patch` directive from a map and returns it.
pub(super) fn take_directive(map: &mut Json) -> Result<Option<Directive>> {
    match map.shift_remove(PATCH) {
        None => Ok(None),
        Some(Value::String(word)) if word == "replace" => Ok(Some(Directive::Replace)),
        Some(Value::String(word)) if word == "delete" => Ok(Some(Directive::Delete)),
        Some(other) => {
            map.insert(PATCH.to_owned(), other.clone());
            Err(unknown_directive(&other, map))
        }
    }
}

/// Returns the error for an unknown directive.
pub(super) fn unknown_directive(directive: &Value, map: &Json) -> PatchError {
    let (named, map) = (GoValue(directive).to_string(), Value::Object(map.clone()));
    refused_error(cut(format!("unknown patch type: {named} in map: {}", GoValue(&map))))
}

/// Returns the value without the maps that contain a directive, or `None` if it is such a map.
pub(super) fn strip_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => {
            let entries = map.into_iter().filter_map(|(key, value)| Some((key, strip_directives(value)?)));
            Some(Value::Object(entries.collect()))
        }
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(strip_directives).collect())),
        other => Some(other),
    }
}

/// Returns an error with status 500: upstream does not attribute it to the client.
pub(super) fn refused_error(text: String) -> PatchError {
    PatchError::Refused(text)
}

pub(super) fn malformed_error(text: String) -> PatchError {
    PatchError::Malformed(text)
}
