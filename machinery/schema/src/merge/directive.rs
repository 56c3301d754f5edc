//! The `$patch` directive, and what a strategic merge patch is made of.

use portico_machinery::object::{Plain, cut};
use serde_json::{Map, Value};

use super::error::PatchError;

const PATCH: &str = "$patch";

pub(super) type Json = Map<String, Value>;

pub(super) type Result<T> = std::result::Result<T, PatchError>;

/// What a directive asks of the map or list element that it stands in.
pub(super) enum Directive {
    Merge,
    Replace,
    Delete,
}

/// Takes the `$patch` directive out of a map.
pub(super) fn directive(map: &mut Json) -> Result<Option<Directive>> {
    match map.shift_remove(PATCH) {
        None => Ok(None),
        Some(Value::String(word)) if word == "merge" => Ok(Some(Directive::Merge)),
        Some(Value::String(word)) if word == "replace" => Ok(Some(Directive::Replace)),
        Some(Value::String(word)) if word == "delete" => Ok(Some(Directive::Delete)),
        Some(other) => {
            let named = Plain(&other).to_string();
            map.insert(PATCH.to_owned(), other);
            let map = Value::Object(std::mem::take(map));
            let text = format!("unknown patch type: {named} in map: {}", Plain(&map));
            Err(PatchError::UnknownDirective(cut(text)))
        }
    }
}

pub(super) fn malformed(text: String) -> PatchError {
    PatchError::Malformed(text)
}
