//! Pruning: drops fields that the schema does not specify.

use std::fmt::Write as _;

use portico_machinery::Bounded;
use portico_machinery::object::cut;
use serde_json::{Map, Value};

use super::model::{Additional, SchemaNode};
use crate::decode::MAX_STRICT_BYTES;

/// Fields that every object has, at the root and in embedded resources.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// True for fields that every object has.
pub(super) fn is_meta(name: &str) -> bool {
    META_FIELDS.contains(&name)
}

/// Result of pruning.
#[derive(Debug, Default)]
pub(super) struct PruneResult {
    /// True if fields were dropped.
    pub has_changed: bool,
    /// Paths of the dropped fields, sorted, if requested.
    pub paths: Vec<String>,
}

/// Prunes an object. Keeps `apiVersion`, `kind` and `metadata` of the root. Returns the paths if `collects_paths`.
pub(super) fn prune_object(
    map: &mut Map<String, Value>,
    root: &SchemaNode,
    collects_paths: bool,
) -> PruneResult {
    let mut walk = Pruner::new(collects_paths);
    walk.map(map, root, true, false);
    let mut paths = walk.paths.into_items();
    paths.sort_unstable();
    PruneResult { has_changed: walk.has_changed, paths }
}

/// Prunes any value. Returns true if fields were dropped. If `is_object`, keeps `apiVersion`, `kind` and `metadata`.
pub(super) fn value(value: &mut Value, node: &SchemaNode, is_object: bool) -> bool {
    let mut walk = Pruner::new(false);
    match value {
        Value::Object(map) if is_object => walk.map(map, node, true, false),
        value => walk.value(value, Some(node), false),
    }
    walk.has_changed
}

struct Pruner {
    path: String,
    collects_paths: bool,
    has_changed: bool,
    paths: Bounded<String>,
}

impl Pruner {
    fn new(collects_paths: bool) -> Self {
        // Limited only in bytes: the paths are sorted before they are counted.
        let paths = Bounded::new(MAX_STRICT_BYTES, MAX_STRICT_BYTES);
        Self { path: String::new(), collects_paths, has_changed: false, paths }
    }

    /// Prunes a value, with its schema if there is one. A `preserved` value keeps its own fields; only fields of specified values
    /// inside are pruned: lists in a preserved value are walked in this way.
    fn value(&mut self, value: &mut Value, node: Option<&SchemaNode>, preserved: bool) {
        match (value, node) {
            (Value::Object(map), Some(node)) => self.map(map, node, node.embedded, preserved),
            (Value::Object(map), None) if !preserved => self.drop_fields(map, |_| false),
            (Value::Array(list), node) => {
                let preserved = preserved || node.is_some_and(|node| node.preserve_unknown);
                self.list(list, node.and_then(|node| node.items.as_deref()), preserved);
            }
            _ => {}
        }
    }

    fn map(&mut self, map: &mut Map<String, Value>, node: &SchemaNode, is_object: bool, preserved: bool) {
        let always = |key: &str| is_object && is_meta(key);
        if !preserved && !node.preserve_unknown && node.additional == Additional::Absent {
            self.drop_fields(map, |key| always(key) || node.property(key).is_some());
        }
        // Scalars have no fields.
        let holds = |value: &Value| value.is_object() || value.is_array();
        for (key, value) in map.iter_mut().filter(|(key, value)| holds(value) && !always(key)) {
            let child = node.field(key).map(|child| &**child);
            if child.is_none() && node.additional == Additional::Absent {
                // Preserved, and not specified.
                continue;
            }
            let path_len = self.path.len();
            if self.collects_paths {
                self.push(key);
            }
            self.value(value, child, false);
            self.path.truncate(path_len);
        }
    }

    fn list(&mut self, list: &mut [Value], items: Option<&SchemaNode>, preserved: bool) {
        let path_len = self.path.len();
        for (index, item) in list.iter_mut().enumerate() {
            if self.collects_paths && (item.is_object() || item.is_array()) {
                // Writing to a string cannot fail.
                let _ = write!(self.path, "[{index}]");
            }
            self.value(item, items, preserved);
            self.path.truncate(path_len);
        }
    }

    fn push(&mut self, key: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
    }

    fn drop_fields(&mut self, map: &mut Map<String, Value>, stays: impl Fn(&str) -> bool) {
        map.retain(|key, _| {
            let stays = stays(key);
            if !stays {
                self.has_changed = true;
                self.record(key);
            }
            stays
        });
    }

    fn record(&mut self, key: &str) {
        if !self.collects_paths || self.paths.is_full() {
            return;
        }
        let path_len = self.path.len();
        self.push(key);
        let path = &self.path;
        self.paths.push_with(|| cut(path.clone()));
        self.path.truncate(path_len);
    }
}

#[cfg(test)]
#[path = "prune_tests.rs"]
mod tests;
