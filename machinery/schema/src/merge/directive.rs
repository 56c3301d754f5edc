//! The `$patch` directive, and what a strategic merge patch is made of.

use portico_machinery::object::{Plain, cut};
use serde_json::{Map, Value};

use super::error::PatchError;

const PATCH: &str = "$patch";

pub(super) type Json = Map<String, Value>;

pub(super) type Result<T> = std::result::Result<T, PatchError>;

/// What a directive asks of the map or list element that it stands in.
pub(super) enum Directive {
    Replace,
    Delete,
}

/// Takes the `$patch` directive out of a map.
pub(super) fn directive(map: &mut Json) -> Result<Option<Directive>> {
    match map.shift_remove(PATCH) {
        None => Ok(None),
        Some(Value::String(word)) if word == "replace" => Ok(Some(Directive::Replace)),
        Some(Value::String(word)) if word == "delete" => Ok(Some(Directive::Delete)),
        Some(other) => {
            map.insert(PATCH.to_owned(), other.clone());
            Err(unknown(&other, map))
        }
    }
}

/// A directive that is none.
pub(super) fn unknown(directive: &Value, map: &Json) -> PatchError {
    let (named, map) = (Plain(directive).to_string(), Value::Object(map.clone()));
    refused(cut(format!("unknown patch type: {named} in map: {}", Plain(&map))))
}

/// The value without maps that a directive stands in; nothing where it is such a map itself.
pub(super) fn no_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => {
            let kept = map.into_iter().filter_map(|(key, value)| Some((key, no_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(no_directives).collect())),
        other => Some(other),
    }
}

/// 500, for upstream does not say whose fault it is.
pub(super) fn refused(text: String) -> PatchError {
    PatchError::Refused(text)
}

pub(super) fn malformed(text: String) -> PatchError {
    PatchError::Malformed(text)
}
