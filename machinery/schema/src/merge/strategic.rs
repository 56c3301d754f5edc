//! Strategic merge patch as upstream does it: merges fields and lists by their patch strategy and applies the directives
//! inside. Values that did not exist are added without their nulls and directives; only existing values are merged.

use std::collections::HashSet;

use serde_json::Value;

use super::directive::{Directive, Json, Result, directive, malformed, no_directives, refused};
use super::document::{drop_nulls_of_maps, remove_all};
use super::element_order;
use super::lists::{check_elements, delete_primitives, identities, key_of, ordered, union};
use super::place::{Place, no_merge_key};
use crate::model::{Field, Type, TypeSet};

const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PRIMITIVES: &str = "$deleteFromPrimitiveList";

/// Merges a struct.
pub(super) fn structure(types: &TypeSet, ty: &Type, original: Json, patch: Json) -> Result<Json> {
    map(types, Place::Struct(ty), original, patch)
}

fn map(types: &TypeSet, at: Place<'_>, mut original: Json, mut patch: Json) -> Result<Json> {
    match directive(&mut patch)? {
        Some(Directive::Delete) => return Ok(Json::new()),
        Some(Directive::Replace) => return Ok(patch),
        None => {}
    }
    retain_keys(&mut original, &mut patch)?;
    element_order::apply(at, &mut original, &mut patch, &|field, old, new| list(types, field, old, new))?;
    // Delete keys together: deleting each one separately would shift all later keys.
    let mut deleted = HashSet::new();
    for (key, value) in patch {
        if key.starts_with(DELETE_PRIMITIVES) {
            delete(types, at, &key, &mut original, value)?;
            continue;
        }
        let old = original.get_mut(&key).map(Value::take).filter(|_| !deleted.contains(&key));
        let merged = match (old, value) {
            (_, Value::Null) => None,
            (Some(Value::Object(old)), Value::Object(new)) => {
                Some(Value::Object(below(types, at.field(&key)?, old, new)?))
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                Some(Value::Array(list(types, at.field(&key)?, old, new)?))
            }
            (_, new) => new_value(new),
        };
        match merged {
            Some(value) => drop(original.insert(key, value)),
            None => drop(deleted.insert(key)),
        }
    }
    remove_all(&mut original, &deleted);
    Ok(original)
}

/// Prepares a value that did not exist or had another type.
fn new_value(mut value: Value) -> Option<Value> {
    drop_nulls_of_maps(&mut value);
    no_directives(value)
}

/// Merges the map of a field.
fn below(types: &TypeSet, field: &Field, old: Json, new: Json) -> Result<Json> {
    if field.patch.replace { Ok(new) } else { map(types, Place::of(types, &field.ty), old, new) }
}

/// Merges the list of a field if its patch strategy is to merge, otherwise replaces it.
fn list(types: &TypeSet, field: &Field, old: Vec<Value>, new: Vec<Value>) -> Result<Vec<Value>> {
    if field.patch.merge { merge(types, field, old, new) } else { Ok(new) }
}

/// Applies `$deleteFromPrimitiveList/field`, which removes scalars.
fn delete(types: &TypeSet, at: Place<'_>, key: &str, original: &mut Json, gone: Value) -> Result<()> {
    let Some(name) = key.strip_prefix(DELETE_PRIMITIVES).and_then(|rest| rest.strip_prefix('/')) else {
        return Err(malformed("invalid patch format of primitive list".to_owned()));
    };
    let (Some(Value::Array(old)), Value::Array(gone)) = (original.get_mut(name), gone) else { return Ok(()) };
    if old.is_empty() && gone.is_empty() {
        return Ok(());
    }
    let field = at.field(name)?;
    if check_elements(old, &gone)? {
        *old = keyed(types, field, std::mem::take(old), gone)?;
    } else {
        delete_primitives(old, &gone);
    }
    Ok(())
}

/// Applies `$retainKeys`: the original retains only these keys, and the patch must not set others.
fn retain_keys(original: &mut Json, patch: &mut Json) -> Result<()> {
    let Some(directive) = patch.shift_remove(RETAIN_KEYS) else { return Ok(()) };
    let refused = || malformed("invalid patch format of retainKeys".to_owned());
    let Value::Array(keys) = directive else { return Err(refused()) };
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let is_directive =
        |key: &str| key.starts_with(DELETE_PRIMITIVES) || key.starts_with(element_order::PREFIX);
    let sets = |(key, value): (&String, &Value)| !value.is_null() && !is_directive(key);
    if patch.iter().any(|(key, value)| sets((key, value)) && !keys.contains(key.as_str())) {
        return Err(refused());
    }
    original.retain(|key, _| keys.contains(key.as_str()));
    Ok(())
}

/// Merges two lists: maps by their key, everything else as a set.
fn merge(types: &TypeSet, field: &Field, old: Vec<Value>, new: Vec<Value>) -> Result<Vec<Value>> {
    if old.is_empty() && new.is_empty() {
        return Ok(old);
    }
    if check_elements(&old, &new)? {
        return keyed(types, field, old, new);
    }
    let (order, server) = (identities(field, &new), identities(field, &old));
    Ok(ordered(field, union(old, new), &order, &server))
}

/// Merges two lists of maps and applies the directives in the patch, in their order.
fn keyed(types: &TypeSet, field: &Field, old: Vec<Value>, new: Vec<Value>) -> Result<Vec<Value>> {
    let Some(key) = &field.merge_key else {
        return Err(refused("cannot merge lists without merge key for struct".to_owned()));
    };
    let (old, new) = special(key, old, new)?;
    let (order, server) = (identities(field, &new), identities(field, &old));
    let merged = elements(types, field, key, old, new)?;
    if let Some(Value::Object(keyless)) = merged.iter().find(|element| element.get(&**key).is_none()) {
        return Err(no_merge_key(keyless, key));
    }
    Ok(ordered(field, merged, &order, &server))
}

/// Applies the directives that are list elements. Returns the remaining elements of both lists.
fn special(key: &str, mut old: Vec<Value>, new: Vec<Value>) -> Result<(Vec<Value>, Vec<Value>)> {
    let (mut left, mut gone, mut replaces) = (Vec::new(), HashSet::new(), false);
    for element in new {
        let Value::Object(map) = &element else { continue };
        match map.get("$patch") {
            None => left.push(element),
            Some(Value::String(word)) if word == "replace" => replaces = true,
            Some(Value::String(word)) if word == "delete" => {
                gone.insert(key_of(map, key).ok_or_else(|| no_merge_key(map, key))?);
            }
            Some(Value::String(word)) if word == "merge" => {
                return Err(refused("merging lists cannot yet be specified in the patch".to_owned()));
            }
            Some(other) => return Err(super::directive::unknown(other, map)),
        }
    }
    if replaces {
        return Ok((left, Vec::new()));
    }
    old.retain(|element| element.get(key).is_none_or(|value| !gone.contains(&value.to_string())));
    Ok((old, left))
}

/// Merges elements into those with the same key, and appends the others unchanged.
fn elements(
    types: &TypeSet,
    field: &Field,
    key: &str,
    old: Vec<Value>,
    new: Vec<Value>,
) -> Result<Vec<Value>> {
    let at = Place::of(types, &field.ty);
    let mut by_key = super::lists::places_by(&old, key);
    let mut merged = old;
    for element in new {
        let Value::Object(element) = element else { continue };
        let identity = key_of(&element, key).ok_or_else(|| no_merge_key(&element, key))?;
        let place = *by_key.entry(identity).or_insert(merged.len());
        match merged.get_mut(place).map(Value::take) {
            Some(Value::Object(original)) => {
                merged[place] = Value::Object(map(types, at, original, element)?);
            }
            _ => merged.push(Value::Object(element)),
        }
    }
    Ok(merged)
}
