//! Strategic merge patch of lists, by merge key or as sets of scalars, and the order of the result.
//!
//! Elements are found through an index by key, so that the cost is linear in the length of the lists.

use std::collections::{HashMap, HashSet};

use portico_machinery::object::{GoValue, cut};
use serde_json::Value;

use super::directive::{Json, Result, refused_error};
use super::document::go_type;
use super::error::PatchError;
use crate::model::Field;

/// Checks that all elements of both lists have one type and are not lists. Returns true if they are maps.
pub(super) fn check_elements(old: &[Value], new: &[Value]) -> Result<bool> {
    let mut elements = old.iter().chain(new);
    let Some(first) = elements.next() else { return Ok(false) };
    if first.is_array() {
        return Err(PatchError::Failed("lists of lists are not supported".to_owned()));
    }
    if elements.any(|element| go_type(element) != go_type(first)) {
        let show = |list: &[Value]| cut(GoValue(&Value::Array(list.to_vec())).to_string());
        let (old, new) = (show(old), show(new));
        return Err(refused_error(format!("list element types are not identical: [{old} {new}]")));
    }
    Ok(first.is_object())
}

/// Removes scalars from a list.
pub(super) fn delete_primitives(list: &mut Vec<Value>, removed: &[Value]) {
    let removed_texts: HashSet<String> = removed.iter().map(ToString::to_string).collect();
    list.retain(|value| !removed_texts.contains(&value.to_string()));
}

/// Returns the elements of both lists, each scalar once.
pub(super) fn union(old: Vec<Value>, new: Vec<Value>) -> Vec<Value> {
    let mut seen = HashMap::new();
    old.into_iter().chain(new).filter(|value| seen.insert(value.to_string(), ()).is_none()).collect()
}

pub(super) fn key_value(element: &Json, key: &str) -> Option<String> {
    element.get(key).map(ToString::to_string)
}

/// Returns the index of the first element for each key value.
pub(super) fn indices_by_key(list: &[Value], key: &str) -> HashMap<String, usize> {
    let mut indices = HashMap::new();
    for (index, element) in list.iter().enumerate() {
        if let Some(value) = element.get(key) {
            indices.entry(value.to_string()).or_insert(index);
        }
    }
    indices
}

/// Returns the identity of an element: the value of its merge key, or the element.
pub(super) fn identity(field: &Field, element: &Value) -> String {
    match &field.merge_key {
        Some(key) => element.get(&**key).map(ToString::to_string).unwrap_or_default(),
        None => element.to_string(),
    }
}

pub(super) fn identities(field: &Field, list: &[Value]) -> Vec<String> {
    list.iter().map(|element| identity(field, element)).collect()
}

fn indices_by_identity(identities: &[String]) -> HashMap<String, usize> {
    let mut places = HashMap::new();
    for (index, identity) in identities.iter().enumerate() {
        places.entry(identity.clone()).or_insert(index);
    }
    places
}

/// Orders a merged list. Elements in `order` follow that order, the others follow the server's. If both orders contain two
/// elements, the server's order applies between them; otherwise the element in `order` goes first.
pub(super) fn order_elements(
    field: &Field,
    merged: Vec<Value>,
    order: &[String],
    server: &[String],
) -> Vec<Value> {
    let (order, server) = (indices_by_identity(order), indices_by_identity(server));
    let (mut listed, mut unlisted) = (Vec::new(), Vec::new());
    for element in merged {
        let identity = identity(field, &element);
        let at_server = server.get(&identity).copied();
        match order.get(&identity) {
            Some(index) => listed.push((*index, at_server, element)),
            None => unlisted.push((at_server.unwrap_or(usize::MAX), at_server, element)),
        }
    }
    listed.sort_by_key(|(index, ..)| *index);
    unlisted.sort_by_key(|(index, ..)| *index);
    let mut result = Vec::with_capacity(listed.len() + unlisted.len());
    let (mut listed, mut unlisted) = (listed.into_iter().peekable(), unlisted.into_iter().peekable());
    loop {
        let other_first = match (unlisted.peek(), listed.peek()) {
            (None, None) => return result,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some((_, Some(other), _)), Some((_, Some(listed), _))) => other < listed,
            _ => false,
        };
        let next = if other_first { unlisted.next() } else { listed.next() };
        result.extend(next.map(|(_, _, element)| element));
    }
}
