//! Strategic merge patch: fields and lists by their patch strategy, and the directives that stand in them.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::directive::{Directive, Json, Result, directive, malformed};
use super::document::remove_all;
use super::lists::{delete_primitives, identities, identity, key_of, ordered, places, union};
use crate::model::{Field, FieldType, Type, TypeSet};

const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PRIMITIVES: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

/// What is known of the map that is being merged.
#[derive(Clone, Copy)]
enum Place<'s> {
    /// A struct with fields.
    Struct(&'s Type),
    /// A map of such values.
    MapOf(&'s FieldType),
    /// Nothing: maps merge, lists are replaced.
    Opaque,
}

impl<'s> Place<'s> {
    fn of(types: &'s TypeSet, ty: &'s FieldType) -> Self {
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

/// Merges a struct; nothing when the patch deletes it.
pub(super) fn structure(types: &TypeSet, ty: &Type, original: Json, patch: Json) -> Result<Option<Json>> {
    map(types, Place::Struct(ty), original, patch)
}

/// Merges a map; nothing when the patch deletes it.
fn map(types: &TypeSet, at: Place<'_>, mut original: Json, mut patch: Json) -> Result<Option<Json>> {
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
            delete_primitives(original.get_mut(name), &value)?;
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
        Some(field) if field.patch.merge => merge(types, field, old, new),
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
        let merged = merge_ordered(types, field, old, new, &order)?;
        original.insert(name, Value::Array(merged));
    }
    patch.retain(|key, _| !key.starts_with(ELEMENT_ORDER) && !done.contains(key));
    Ok(())
}

/// Merges a list into another; without an order of its own, the patch's elements take their order from the patch.
fn merge(types: &TypeSet, field: &Field, old: Vec<Value>, new: Vec<Value>) -> Result<Vec<Value>> {
    let order = identities(field, &new);
    let server: Vec<String> = identities(field, &old);
    let merged = elements(types, field, old, new)?;
    Ok(ordered(field, merged, &order, &server))
}

/// The same with the order that `$setElementOrder` gives.
fn merge_ordered(
    types: &TypeSet,
    field: &Field,
    old: Vec<Value>,
    new: Vec<Value>,
    order: &[Value],
) -> Result<Vec<Value>> {
    let order = identities(field, order);
    let known = places(&order);
    if let Some(stray) =
        new.iter().find(|e| e.get("$patch").is_none() && !known.contains_key(&identity(field, e)))
    {
        return Err(malformed(format!("the order of {} does not list the element {stray}", field.name)));
    }
    let server = identities(field, &old);
    let merged = elements(types, field, old, new)?;
    Ok(ordered(field, merged, &order, &server))
}

fn elements(types: &TypeSet, field: &Field, old: Vec<Value>, new: Vec<Value>) -> Result<Vec<Value>> {
    match (&field.merge_key, &field.ty) {
        (Some(key), FieldType::List(of)) => keyed(types, Place::of(types, of), key, old, new),
        _ => Ok(union(old, new)),
    }
}

fn keyed(types: &TypeSet, at: Place<'_>, key: &str, old: Vec<Value>, new: Vec<Value>) -> Result<Vec<Value>> {
    let (mut patches, mut gone, mut replaces) = (Vec::new(), HashMap::new(), false);
    for element in new {
        let Value::Object(mut element) = element else {
            return Err(malformed(format!(
                "an element of a list that merges by {key:?} is no object: {element}"
            )));
        };
        match directive(&mut element)? {
            Some(Directive::Replace) => replaces = true,
            Some(Directive::Delete) => drop(gone.insert(key_of(&element, key)?, ())),
            Some(Directive::Merge) | None => patches.push((key_of(&element, key)?, element)),
        }
    }
    let mut kept: Vec<Value> = if replaces { Vec::new() } else { old };
    kept.retain(|element| element.get(key).is_none_or(|value| !gone.contains_key(&value.to_string())));
    let mut at_key: HashMap<String, usize> = HashMap::new();
    for (place, element) in kept.iter().enumerate() {
        if let Some(value) = element.get(key) {
            at_key.entry(value.to_string()).or_insert(place);
        }
    }
    let mut merged: Vec<Option<Value>> = kept.into_iter().map(Some).collect();
    for (identity, patch) in patches {
        let place = *at_key.entry(identity).or_insert(merged.len());
        if place == merged.len() {
            merged.push(None);
        }
        let original = match merged[place].take() {
            Some(Value::Object(original)) => original,
            _ => Json::new(),
        };
        merged[place] = map(types, at, original, patch)?.map(Value::Object);
    }
    Ok(merged.into_iter().flatten().collect())
}
