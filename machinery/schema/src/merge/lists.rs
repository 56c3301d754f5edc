//! Strategic merge patch of lists: by merge key or as sets of scalars, and in which order the result stands.
//!
//! Elements are found through an index by key, so that long lists cost no more than their length.

use std::collections::HashMap;

use serde_json::Value;

use super::strategic::{Directive, Json, Place, Result, directive, malformed, map};
use crate::model::{Field, FieldType, TypeSet};

/// Merges a list into another; without an order of its own, the patch's elements take their order from the patch.
pub(super) fn merge(types: &TypeSet, field: &Field, old: Vec<Value>, new: Vec<Value>) -> Result<Vec<Value>> {
    let order = identities(field, &new);
    let server: Vec<String> = identities(field, &old);
    let merged = elements(types, field, old, new)?;
    Ok(ordered(field, merged, &order, &server))
}

/// The same with the order that `$setElementOrder` gives.
pub(super) fn merge_ordered(
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

/// `$deleteFromPrimitiveList`: removes scalars.
pub(super) fn delete_primitives(list: Option<&mut Value>, gone: &Value) -> Result<()> {
    let Value::Array(gone) = gone else {
        return Err(malformed("$deleteFromPrimitiveList is no list".to_owned()));
    };
    let gone: HashMap<String, usize> = gone.iter().map(|v| (v.to_string(), 0)).collect();
    if let Some(Value::Array(list)) = list {
        list.retain(|value| !gone.contains_key(&value.to_string()));
    }
    Ok(())
}

fn elements(types: &TypeSet, field: &Field, old: Vec<Value>, new: Vec<Value>) -> Result<Vec<Value>> {
    match (&field.merge_key, &field.ty) {
        (Some(key), FieldType::List(of)) => keyed(types, Place::of(types, of), key, old, new),
        _ => Ok(union(old, new)),
    }
}

/// Both lists, each scalar once.
fn union(old: Vec<Value>, new: Vec<Value>) -> Vec<Value> {
    let mut seen = HashMap::new();
    old.into_iter().chain(new).filter(|value| seen.insert(value.to_string(), ()).is_none()).collect()
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

fn key_of(element: &Json, key: &str) -> Result<String> {
    match element.get(key) {
        Some(value) => Ok(value.to_string()),
        None => {
            let element = serde_json::to_string(element).unwrap_or_default();
            Err(malformed(format!("map: {element} does not contain declared merge key: {key}")))
        }
    }
}

/// What makes an element the same element: its merge key's value, or itself.
fn identity(field: &Field, element: &Value) -> String {
    match &field.merge_key {
        Some(key) => element.get(&**key).map(ToString::to_string).unwrap_or_default(),
        None => element.to_string(),
    }
}

fn identities(field: &Field, list: &[Value]) -> Vec<String> {
    list.iter().map(|element| identity(field, element)).collect()
}

fn places(identities: &[String]) -> HashMap<String, usize> {
    let mut places = HashMap::new();
    for (at, identity) in identities.iter().enumerate() {
        places.entry(identity.clone()).or_insert(at);
    }
    places
}

/// Elements that `order` names stand in its order, the others in the server's; where both orders know two elements,
/// the server's decides between them, else the named one goes first.
fn ordered(field: &Field, merged: Vec<Value>, order: &[String], server: &[String]) -> Vec<Value> {
    let (order, server) = (places(order), places(server));
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for element in merged {
        let identity = identity(field, &element);
        let at_server = server.get(&identity).copied();
        match order.get(&identity) {
            Some(at) => named.push((*at, at_server, element)),
            None => others.push((at_server.unwrap_or(usize::MAX), at_server, element)),
        }
    }
    named.sort_by_key(|(at, ..)| *at);
    others.sort_by_key(|(at, ..)| *at);
    let mut result = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let other_first = match (others.peek(), named.peek()) {
            (None, None) => return result,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some((_, Some(other), _)), Some((_, Some(named), _))) => other < named,
            _ => false,
        };
        let next = if other_first { others.next() } else { named.next() };
        result.extend(next.map(|(_, _, element)| element));
    }
}
