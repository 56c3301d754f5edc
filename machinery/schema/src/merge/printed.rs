//! The result of a patch as upstream prints it in an error if the result is invalid: Go's JSON, with sorted keys in each map
//! into which the patch was merged, and otherwise in the original order. Only built to reject a patch.

use std::collections::HashMap;

use portico_machinery::Object;
use portico_machinery::object::{GoValue, escape_html, sort_keys};
use serde_json::Value;

use super::document::parse_patch;
use super::json_patch::unescape;

/// Returns the result of a merge patch of `current` in upstream's order.
#[must_use]
pub fn merge_patch_result(current: &Object, patch: &[u8], merged: &Object) -> Object {
    let mut merged = with_upstream_order(merged);
    if let Ok(patch) = parse_patch(patch) {
        sort_merged(Some(&Value::Object(current.map().clone())), &patch, &mut merged);
    }
    into_object(merged)
}

/// Formats an object for an error message.
#[must_use]
pub fn text(object: &Object) -> String {
    let json = object.to_json();
    escape_html(&String::from_utf8_lossy(&json)).into_owned()
}

fn into_object(value: Value) -> Object {
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
fn with_upstream_order(object: &Object) -> Value {
    let mut map = object.map().clone();
    if let Some(Value::Object(metadata)) = map.get_mut("metadata")
        && let Some(revision) = metadata.shift_remove("resourceVersion")
    {
        let before = ["name", "generateName", "namespace", "selfLink", "uid"];
        let index = metadata.keys().take_while(|key| before.contains(&key.as_str())).count();
        metadata.shift_insert(index, "resourceVersion".to_owned(), revision);
    }
    Value::Object(map)
}

/// Returns the result of a patch of a custom resource, whose keys are sorted at all levels.
#[must_use]
pub fn sorted_result(merged: &Object) -> Object {
    let mut merged = Value::Object(merged.map().clone());
    sort_keys(&mut merged);
    into_object(merged)
}

/// Formats a strategic merge patch, which upstream prints instead of the result, as a Go map.
#[must_use]
pub fn strategic_patch(patch: &[u8]) -> String {
    parse_patch(patch).map(|patch| GoValue(&patch).to_string()).unwrap_or_default()
}

/// Returns the result of a JSON patch in upstream's order.
#[must_use]
pub fn json_patch_result(patch: &[u8], patched: &Object) -> Object {
    let mut patched = with_upstream_order(patched);
    let mut visited = VisitedPaths::default();
    let operations = parse_patch(patch).ok();
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
    into_object(patched)
}

/// Containers that the paths of operations pass through, each once.
#[derive(Clone, Default)]
struct VisitedPaths {
    children: HashMap<String, VisitedPaths>,
    /// True if the paths only reached this value and did not look into it.
    is_leaf: bool,
}

impl VisitedPaths {
    fn add(&mut self, path: &str, compared: bool) {
        let mut node = self;
        for part in path.split('/').skip(1) {
            node.is_leaf = false;
            node = node
                .children
                .entry(unescape(part))
                .or_insert_with(|| Self { is_leaf: true, ..Self::default() });
        }
        node.is_leaf &= !compared;
    }

    /// Copies the visited paths of a copied or moved value: it is written with its current order.
    fn copy(&mut self, from: &str, to: &str) {
        let from = from
            .split('/')
            .skip(1)
            .try_fold(&*self, |node, part| node.children.get(&unescape(part)))
            .cloned();
        let Some(from) = from.filter(|from| !from.children.is_empty()) else { return };
        self.add(to, false);
        let to = to.split('/').skip(1).try_fold(self, |node, part| node.children.get_mut(&unescape(part)));
        if let Some(to) = to {
            *to = from;
        }
    }

    fn sort(&self, value: &mut Value) {
        if self.is_leaf {
            return;
        }
        for (part, child) in &self.children {
            let inner = match &mut *value {
                Value::Object(map) => map.get_mut(part),
                Value::Array(list) => part.parse::<usize>().ok().and_then(|index| list.get_mut(index)),
                _ => None,
            };
            if let Some(inner) = inner {
                child.sort(inner);
            }
        }
        if let Value::Object(map) = value {
            map.sort_keys();
        }
    }
}
