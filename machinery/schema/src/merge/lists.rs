//! Strategic merge patch of lists, by merge key or as sets of scalars, and the order of the result.
//!
//! Elements are found through an index by key, so that the cost is linear in the length of the lists.

use std::collections::{HashMap, HashSet};

use portico_machinery::object::{Plain, cut};
use serde_json::Value;

use super::directive::{Json, Result, refused};
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
        let show = |list: &[Value]| cut(Plain(&Value::Array(list.to_vec())).to_string());
        let (old, new) = (show(old), show(new));
        return Err(refused(format!("list element types are not identical: [{old} {new}]")));
    }
    Ok(first.is_object())
}

/// Removes scalars from a list.
pub(super) fn delete_primitives(list: &mut Vec<Value>, gone: &[Value]) {
    let gone: HashSet<String> = gone.iter().map(ToString::to_string).collect();
    list.retain(|value| !gone.contains(&value.to_string()));
}

/// Returns the elements of both lists, each scalar once.
pub(super) fn union(old: Vec<Value>, new: Vec<Value>) -> Vec<Value> {
    let mut seen = HashMap::new();
    old.into_iter().chain(new).filter(|value| seen.insert(value.to_string(), ()).is_none()).collect()
}

pub(super) fn key_of(element: &Json, key: &str) -> Option<String> {
    element.get(key).map(ToString::to_string)
}

/// Returns the index of the first element for each key value.
pub(super) fn places_by(list: &[Value], key: &str) -> HashMap<String, usize> {
    let mut places = HashMap::new();
    for (place, element) in list.iter().enumerate() {
        if let Some(value) = element.get(key) {
            places.entry(value.to_string()).or_insert(place);
        }
    }
    places
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

fn places(identities: &[String]) -> HashMap<String, usize> {
    let mut places = HashMap::new();
    for (at, identity) in identities.iter().enumerate() {
        places.entry(identity.clone()).or_insert(at);
    }
    places
}

/// Orders a merged list. Elements in `order` follow that order, the others follow the server's. If both orders contain two
/// elements, the server's order applies between them; otherwise the element in `order` goes first.
pub(super) fn ordered(field: &Field, merged: Vec<Value>, order: &[String], server: &[String]) -> Vec<Value> {
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
