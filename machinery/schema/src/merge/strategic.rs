//! Strategic merge patch of maps: fields by their patch strategy, and the directives that stand in maps.

use std::collections::HashSet;

use portico_machinery::object::{Plain, cut};
use serde_json::{Map, Value};

use super::{PatchError, lists, remove_all};
use crate::model::{Field, FieldType, Type, TypeSet};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PRIMITIVES: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

pub(super) type Json = Map<String, Value>;
pub(super) type Result<T> = std::result::Result<T, PatchError>;

/// What is known of the map that is being merged.
#[derive(Clone, Copy)]
pub(super) enum Place<'s> {
    /// A struct with fields.
    Struct(&'s Type),
    /// A map of such values.
    MapOf(&'s FieldType),
    /// Nothing: maps merge, lists are replaced.
    Opaque,
}

impl<'s> Place<'s> {
    pub(super) fn of(types: &'s TypeSet, ty: &'s FieldType) -> Self {
        match types.resolve(ty) {
            FieldType::Ref(id) => Self::Struct(types.get(*id)),
            FieldType::Map(of) => Self::MapOf(of),
            _ => Self::Opaque,
        }
    }

    fn field(self, name: &str) -> Option<&'s Field> {
        if let Self::Struct(ty) = self { ty.field(name) } else { None }
    }

    /// What is known of the value under a key.
    fn below(self, types: &'s TypeSet, key: &str) -> Self {
        match self {
            Self::Struct(ty) => ty.field(key).map_or(Self::Opaque, |field| Self::of(types, &field.ty)),
            Self::MapOf(of) => Self::of(types, of),
            Self::Opaque => Self::Opaque,
        }
    }
}

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

/// Merges a struct; nothing when the patch deletes it.
pub(super) fn structure(types: &TypeSet, ty: &Type, original: Json, patch: Json) -> Result<Option<Json>> {
    map(types, Place::Struct(ty), original, patch)
}

/// Merges a map; nothing when the patch deletes it.
pub(super) fn map(
    types: &TypeSet,
    at: Place<'_>,
    mut original: Json,
    mut patch: Json,
) -> Result<Option<Json>> {
    match directive(&mut patch)? {
        Some(Directive::Delete) => return Ok(None),
        Some(Directive::Replace) => original.clear(),
        Some(Directive::Merge) | None => {}
    }
    retain_keys(&mut original, &mut patch)?;
    element_orders(types, at, &mut original, &mut patch)?;
    // Deleted keys leave the map together: each by itself would shift all that follow it.
    let mut deleted = HashSet::new();
    for (key, value) in patch {
        if let Some(name) = key.strip_prefix(DELETE_PRIMITIVES) {
            lists::delete_primitives(original.get_mut(name), &value)?;
            continue;
        }
        let merged = match (original.get_mut(&key).map(Value::take), value) {
            (_, Value::Null) => None,
            (old, Value::Object(new)) => below(types, at, &key, old, new)?,
            (old, Value::Array(new)) => Some(Value::Array(list(types, at, &key, old, new)?)),
            (_, scalar) => Some(scalar),
        };
        match merged {
            Some(value) => drop(original.insert(key, value)),
            None => drop(deleted.insert(key)),
        }
    }
    remove_all(&mut original, &deleted);
    Ok(Some(original))
}

/// A map under a key.
fn below(types: &TypeSet, at: Place<'_>, key: &str, old: Option<Value>, new: Json) -> Result<Option<Value>> {
    let replaces = at.field(key).is_some_and(|field| field.patch.replace);
    let old = match old {
        Some(Value::Object(old)) if !replaces => old,
        _ => Json::new(),
    };
    Ok(map(types, at.below(types, key), old, new)?.map(Value::Object))
}

/// A list under a key: merged where the field's strategy says so, else replaced.
fn list(
    types: &TypeSet,
    at: Place<'_>,
    key: &str,
    old: Option<Value>,
    new: Vec<Value>,
) -> Result<Vec<Value>> {
    let old = if let Some(Value::Array(old)) = old { old } else { Vec::new() };
    match at.field(key) {
        Some(field) if field.patch.merge => lists::merge(types, field, old, new),
        _ => Ok(new),
    }
}

/// `$retainKeys`: of the original only these keys stay, and the patch may set no other.
fn retain_keys(original: &mut Json, patch: &mut Json) -> Result<()> {
    let Some(directive) = patch.shift_remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(keys) = directive else {
        return Err(malformed(format!("{RETAIN_KEYS} is no list")));
    };
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    if let Some(stray) = patch
        .iter()
        .find(|(key, value)| !value.is_null() && !key.starts_with('$') && !keys.contains(key.as_str()))
    {
        return Err(malformed(format!(
            "a {RETAIN_KEYS} directive must list every field that the patch sets: {:?} is missing",
            stray.0
        )));
    }
    original.retain(|key, _| keys.contains(key.as_str()));
    Ok(())
}

/// `$setElementOrder`: merges the lists that they name, and puts them in order. The directives, and the lists that are
/// merged here, leave the patch together.
fn element_orders(types: &TypeSet, at: Place<'_>, original: &mut Json, patch: &mut Json) -> Result<()> {
    let mut directives = Vec::new();
    for (key, value) in patch.iter_mut() {
        if let Some(name) = key.strip_prefix(ELEMENT_ORDER) {
            directives.push((name.to_owned(), value.take()));
        }
    }
    if directives.is_empty() {
        return Ok(());
    }
    let mut done = HashSet::new();
    for (name, order) in directives {
        let Value::Array(order) = order else {
            return Err(malformed(format!("{ELEMENT_ORDER}{name} is no list")));
        };
        let Some(field) = at.field(&name).filter(|field| field.patch.merge) else { continue };
        let new = match patch.get_mut(&name) {
            Some(Value::Array(new)) => {
                let new = std::mem::take(new);
                done.insert(name.clone());
                new
            }
            // Null or something that is no list: nothing to put in order.
            Some(_) => continue,
            None => Vec::new(),
        };
        let old = match original.get_mut(&name).map(Value::take) {
            Some(Value::Array(old)) => old,
            _ if new.is_empty() => continue,
            _ => Vec::new(),
        };
        let merged = lists::merge_ordered(types, field, old, new, &order)?;
        original.insert(name, Value::Array(merged));
    }
    patch.retain(|key, _| !key.starts_with(ELEMENT_ORDER) && !done.contains(key));
    Ok(())
}
