//! Strategic merge patch of lists: by merge key or as sets of scalars, and in which order the result stands.
//!
//! Elements are found through an index by key, so that long lists cost no more than their length.

use std::collections::HashMap;

use serde_json::Value;

use super::directive::{Json, Result, malformed};
use crate::model::Field;

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

/// Both lists, each scalar once.
pub(super) fn union(old: Vec<Value>, new: Vec<Value>) -> Vec<Value> {
    let mut seen = HashMap::new();
    old.into_iter().chain(new).filter(|value| seen.insert(value.to_string(), ()).is_none()).collect()
}

pub(super) fn key_of(element: &Json, key: &str) -> Result<String> {
    match element.get(key) {
        Some(value) => Ok(value.to_string()),
        None => {
            let element = serde_json::to_string(element).unwrap_or_default();
            Err(malformed(format!("map: {element} does not contain declared merge key: {key}")))
        }
    }
}

/// What makes an element the same element: its merge key's value, or itself.
pub(super) fn identity(field: &Field, element: &Value) -> String {
    match &field.merge_key {
        Some(key) => element.get(&**key).map(ToString::to_string).unwrap_or_default(),
        None => element.to_string(),
    }
}

pub(super) fn identities(field: &Field, list: &[Value]) -> Vec<String> {
    list.iter().map(|element| identity(field, element)).collect()
}

pub(super) fn places(identities: &[String]) -> HashMap<String, usize> {
    let mut places = HashMap::new();
    for (at, identity) in identities.iter().enumerate() {
        places.entry(identity.clone()).or_insert(at);
    }
    places
}

/// Elements that `order` names stand in its order, the others in the server's; where both orders know two elements,
/// the server's decides between them, else the named one goes first.
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
