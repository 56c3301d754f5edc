//! The result of a patch as upstream prints it in an error if the result is invalid: Go's JSON, with sorted keys in each map
//! into which the patch was merged, and otherwise in the original order. Only built to reject a patch.

use std::collections::HashMap;

use portico_machinery::Object;
use portico_machinery::object::{Plain, escape_html, sort_keys};
use serde_json::Value;

use super::document::read;
use super::json_patch::unescaped;

/// Returns the result of a merge patch of `current` in upstream's order.
#[must_use]
pub fn merged(current: &Object, patch: &[u8], merged: &Object) -> Object {
    let mut merged = in_order(merged);
    if let Ok(patch) = read(patch) {
        sort_merged(Some(&Value::Object(current.map().clone())), &patch, &mut merged);
    }
    object(merged)
}

/// Formats an object for an error message.
#[must_use]
pub fn text(object: &Object) -> String {
    let json = object.to_json();
    escape_html(&String::from_utf8_lossy(&json)).into_owned()
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(map) => Object::from_map(map),
        _ => Object::default(),
    }
}

fn sort_merged(old: Option<&Value>, patch: &Value, merged: &mut Value) {
    match (old, patch, merged) {
        (Some(Value::Object(old)), Value::Object(patch), Value::Object(merged)) => {
            for (key, patch) in patch {
                if let Some(merged) = merged.get_mut(key) {
                    sort_merged(old.get(key), patch, merged);
                }
            }
            merged.sort_keys();
        }
        // A value that replaces a map is used unchanged; upstream removes nulls from all others, which sorts their keys.
        (Some(Value::Object(_)), _, _) => {}
        (_, _, merged) => sort_keys(merged),
    }
}

/// Returns the object with `resourceVersion` at upstream's position: it is added to the stored object.
fn in_order(object: &Object) -> Value {
    let mut map = object.map().clone();
    if let Some(Value::Object(metadata)) = map.get_mut("metadata")
        && let Some(revision) = metadata.shift_remove("resourceVersion")
    {
        let before = ["name", "generateName", "namespace", "selfLink", "uid"];
        let at = metadata.keys().take_while(|key| before.contains(&key.as_str())).count();
        metadata.shift_insert(at, "resourceVersion".to_owned(), revision);
    }
    Value::Object(map)
}

/// Returns the result of a patch of a custom resource, whose keys are sorted at all levels.
#[must_use]
pub fn sorted(merged: &Object) -> Object {
    let mut merged = Value::Object(merged.map().clone());
    sort_keys(&mut merged);
    object(merged)
}

/// Formats a strategic merge patch, which upstream prints instead of the result, as a Go map.
#[must_use]
pub fn strategic(patch: &[u8]) -> String {
    read(patch).map(|patch| Plain(&patch).to_string()).unwrap_or_default()
}

/// Returns the result of a JSON patch in upstream's order.
#[must_use]
pub fn patched(patch: &[u8], patched: &Object) -> Object {
    let mut patched = in_order(patched);
    let mut visited = Visited::default();
    let operations = read(patch).ok();
    for operation in operations.as_ref().and_then(Value::as_array).into_iter().flatten() {
        let text = |member: &str| operation.get(member).and_then(Value::as_str);
        let compared = operation.get("op").is_some_and(|op| op == "test");
        if let (Some("copy" | "move"), Some(from), Some(path)) = (text("op"), text("from"), text("path")) {
            visited.copy(from, path);
        }
        for path in ["path", "from"].into_iter().filter_map(text) {
            visited.add(path, compared);
        }
    }
    visited.sort(&mut patched);
    object(patched)
}

/// Containers that the paths of operations pass through, each once.
#[derive(Clone, Default)]
struct Visited {
    below: HashMap<String, Visited>,
    /// True if the paths only reached this value and did not look into it.
    is_last: bool,
}

impl Visited {
    fn add(&mut self, path: &str, compared: bool) {
        let mut at = self;
        for part in path.split('/').skip(1) {
            at.is_last = false;
            at = at.below.entry(unescaped(part)).or_insert_with(|| Self { is_last: true, ..Self::default() });
        }
        at.is_last &= !compared;
    }

    /// Copies the visited paths of a copied or moved value: it is written with its current order.
    fn copy(&mut self, from: &str, to: &str) {
        let from =
            from.split('/').skip(1).try_fold(&*self, |at, part| at.below.get(&unescaped(part))).cloned();
        let Some(from) = from.filter(|from| !from.below.is_empty()) else { return };
        self.add(to, false);
        let to = to.split('/').skip(1).try_fold(self, |at, part| at.below.get_mut(&unescaped(part)));
        if let Some(to) = to {
            *to = from;
        }
    }

    fn sort(&self, value: &mut Value) {
        if self.is_last {
            return;
        }
        for (part, below) in &self.below {
            let inner = match &mut *value {
                Value::Object(map) => map.get_mut(part),
                Value::Array(list) => part.parse::<usize>().ok().and_then(|at| list.get_mut(at)),
                _ => None,
            };
            if let Some(inner) = inner {
                below.sort(inner);
            }
        }
        if let Value::Object(map) = value {
            map.sort_keys();
        }
    }
}
