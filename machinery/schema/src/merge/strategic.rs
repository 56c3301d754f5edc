//! Strategic merge patch as upstream does it: merges fields and lists by their patch strategy and applies the directives
//! inside. Values that did not exist are added without their nulls and directives; only existing values are merged.

use std::collections::HashSet;

use serde_json::Value;

use super::container::{Container, missing_merge_key};
use super::directive::{
    Directive, Json, Result, malformed_error, refused_error, strip_directives, take_directive,
};
use super::document::{drop_nulls_of_maps, remove_all};
use super::element_order;
use super::lists::{check_elements, delete_primitives, identities, key_value, order_elements, union};
use crate::model::{Field, Type, TypeSet};

const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PRIMITIVES: &str = "$deleteFromPrimitiveList";

/// Merges a struct.
pub(super) fn merge_struct(types: &TypeSet, ty: &Type, original: Json, patch: Json) -> Result<Json> {
    merge_map(types, Container::Struct(ty), original, patch)
}

fn merge_map(types: &TypeSet, container: Container<'_>, mut original: Json, mut patch: Json) -> Result<Json> {
    match take_directive(&mut patch)? {
        Some(Directive::Delete) => return Ok(Json::new()),
        Some(Directive::Replace) => return Ok(patch),
        None => {}
    }
    retain_keys(&mut original, &mut patch)?;
    element_order::apply(container, &mut original, &mut patch, &|field, old, new| {
        merge_field_list(types, field, old, new)
    })?;
    // Delete keys together: deleting each one separately would shift all later keys.
    let mut deleted = HashSet::new();
    for (key, value) in patch {
        if key.starts_with(DELETE_PRIMITIVES) {
            delete_from_primitive_list(types, container, &key, &mut original, value)?;
            continue;
        }
        let old = original.get_mut(&key).map(Value::take).filter(|_| !deleted.contains(&key));
        let merged = match (old, value) {
            (_, Value::Null) => None,
            (Some(Value::Object(old)), Value::Object(new)) => {
                Some(Value::Object(merge_field_map(types, container.field(&key)?, old, new)?))
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                Some(Value::Array(merge_field_list(types, container.field(&key)?, old, new)?))
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
    strip_directives(value)
}

/// Merges the map of a field.
fn merge_field_map(types: &TypeSet, field: &Field, old: Json, new: Json) -> Result<Json> {
    if field.patch.replace { Ok(new) } else { merge_map(types, Container::of(types, &field.ty), old, new) }
}

/// Merges the list of a field if its patch strategy is to merge, otherwise replaces it.
fn merge_field_list(types: &TypeSet, field: &Field, old: Vec<Value>, new: Vec<Value>) -> Result<Vec<Value>> {
    if field.patch.merge { merge_lists(types, field, old, new) } else { Ok(new) }
}

/// Applies `$deleteFromPrimitiveList/field`, which removes scalars.
fn delete_from_primitive_list(
    types: &TypeSet,
    container: Container<'_>,
    key: &str,
    original: &mut Json,
    removed: Value,
) -> Result<()> {
    let Some(name) = key.strip_prefix(DELETE_PRIMITIVES).and_then(|rest| rest.strip_prefix('/')) else {
        return Err(malformed_error("invalid patch format of primitive list".to_owned()));
    };
    let (Some(Value::Array(old)), Value::Array(removed_values)) = (original.get_mut(name), removed) else {
        return Ok(());
    };
    if old.is_empty() && removed_values.is_empty() {
        return Ok(());
    }
    let field = container.field(name)?;
    if check_elements(old, &removed_values)? {
        *old = merge_by_key(types, field, std::mem::take(old), removed_values)?;
    } else {
        delete_primitives(old, &removed_values);
    }
    Ok(())
}

/// Applies `$retainKeys`: the original retains only these keys, and the patch must not set others.
fn retain_keys(original: &mut Json, patch: &mut Json) -> Result<()> {
    let Some(directive) = patch.shift_remove(RETAIN_KEYS) else { return Ok(()) };
    let refused = || malformed_error("invalid patch format of retainKeys".to_owned());
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
fn merge_lists(types: &TypeSet, field: &Field, old: Vec<Value>, new: Vec<Value>) -> Result<Vec<Value>> {
    if old.is_empty() && new.is_empty() {
        return Ok(old);
    }
    if check_elements(&old, &new)? {
        return merge_by_key(types, field, old, new);
    }
    let (order, server) = (identities(field, &new), identities(field, &old));
    Ok(order_elements(field, union(old, new), &order, &server))
}

/// Merges two lists of maps and applies the directives in the patch, in their order.
fn merge_by_key(types: &TypeSet, field: &Field, old: Vec<Value>, new: Vec<Value>) -> Result<Vec<Value>> {
    let Some(key) = &field.merge_key else {
        return Err(refused_error("cannot merge lists without merge key for struct".to_owned()));
    };
    let (old, new) = apply_element_directives(key, old, new)?;
    let (order, server) = (identities(field, &new), identities(field, &old));
    let merged = merge_elements(types, field, key, old, new)?;
    if let Some(Value::Object(keyless)) = merged.iter().find(|element| element.get(&**key).is_none()) {
        return Err(missing_merge_key(keyless, key));
    }
    Ok(order_elements(field, merged, &order, &server))
}

/// Applies the directives that are list elements. Returns the remaining elements of both lists.
fn apply_element_directives(
    key: &str,
    mut old: Vec<Value>,
    new: Vec<Value>,
) -> Result<(Vec<Value>, Vec<Value>)> {
    let (mut remaining, mut deleted, mut replaces) = (Vec::new(), HashSet::new(), false);
    for element in new {
        let Value::Object(map) = &element else { continue };
        match map.get("$patch") {
            None => remaining.push(element),
            Some(Value::String(word)) if word == "replace" => replaces = true,
            Some(Value::String(word)) if word == "delete" => {
                deleted.insert(key_value(map, key).ok_or_else(|| missing_merge_key(map, key))?);
            }
            Some(Value::String(word)) if word == "merge" => {
                return Err(refused_error("merging lists cannot yet be specified in the patch".to_owned()));
            }
            Some(other) => return Err(super::directive::unknown_directive(other, map)),
        }
    }
    if replaces {
        return Ok((remaining, Vec::new()));
    }
    old.retain(|element| element.get(key).is_none_or(|value| !deleted.contains(&value.to_string())));
    Ok((old, remaining))
}

/// Merges elements into those with the same key, and appends the others unchanged.
fn merge_elements(
    types: &TypeSet,
    field: &Field,
    key: &str,
    old: Vec<Value>,
    new: Vec<Value>,
) -> Result<Vec<Value>> {
    let container = Container::of(types, &field.ty);
    let mut by_key = super::lists::indices_by_key(&old, key);
    let mut merged = old;
    for element in new {
        let Value::Object(element) = element else { continue };
        let identity = key_value(&element, key).ok_or_else(|| missing_merge_key(&element, key))?;
        let index = *by_key.entry(identity).or_insert(merged.len());
        match merged.get_mut(index).map(Value::take) {
            Some(Value::Object(original)) => {
                merged[index] = Value::Object(merge_map(types, container, original, element)?);
            }
            _ => merged.push(Value::Object(element)),
        }
    }
    Ok(merged)
}
