//! Pruning: drops fields that the schema does not specify.

use std::fmt::Write as _;

use portico_machinery::Bounded;
use portico_machinery::object::cut;
use serde_json::{Map, Value};

use super::model::{Additional, Node};
use crate::decode::MAX_STRICT_BYTES;

/// Fields that every object has, at the root and in embedded resources.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// True for fields that every object has.
pub(super) fn is_meta(name: &str) -> bool {
    META_FIELDS.contains(&name)
}

/// Result of pruning.
#[derive(Debug, Default)]
pub(super) struct Pruned {
    /// True if fields were dropped.
    pub any: bool,
    /// Paths of the dropped fields, sorted, if requested.
    pub paths: Vec<String>,
}

/// Prunes an object. Keeps `apiVersion`, `kind` and `metadata` of the root. Returns the paths if `collects_paths`.
pub(super) fn object(map: &mut Map<String, Value>, root: &Node, named: bool) -> Pruned {
    let mut walk = Walk::new(named);
    walk.map(map, root, true, false);
    let mut paths = walk.paths.into_items();
    paths.sort_unstable();
    Pruned { any: walk.any, paths }
}

/// Prunes any value. Returns true if fields were dropped. If `is_object`, keeps `apiVersion`, `kind` and `metadata`.
pub(super) fn value(value: &mut Value, node: &Node, is_object: bool) -> bool {
    let mut walk = Walk::new(false);
    match value {
        Value::Object(map) if is_object => walk.map(map, node, true, false),
        value => walk.value(value, Some(node), false),
    }
    walk.any
}

struct Walk {
    path: String,
    named: bool,
    any: bool,
    paths: Bounded<String>,
}

impl Walk {
    fn new(named: bool) -> Self {
        // Limited only in bytes: the paths are sorted before they are counted.
        let paths = Bounded::new(MAX_STRICT_BYTES, MAX_STRICT_BYTES);
        Self { path: String::new(), named, any: false, paths }
    }

    /// Prunes a value, with its schema if there is one. A `kept` value keeps its own fields; only fields of specified values
    /// inside are pruned: lists in a preserved value are walked in this way.
    fn value(&mut self, value: &mut Value, node: Option<&Node>, kept: bool) {
        match (value, node) {
            (Value::Object(map), Some(node)) => self.map(map, node, node.embedded, kept),
            (Value::Object(map), None) if !kept => self.drop_fields(map, |_| false),
            (Value::Array(list), node) => {
                let kept = kept || node.is_some_and(|node| node.preserve_unknown);
                self.list(list, node.and_then(|node| node.items.as_deref()), kept);
            }
            _ => {}
        }
    }

    fn map(&mut self, map: &mut Map<String, Value>, node: &Node, is_object: bool, kept: bool) {
        let always = |key: &str| is_object && is_meta(key);
        if !kept && !node.preserve_unknown && node.additional == Additional::Absent {
            self.drop_fields(map, |key| always(key) || node.property(key).is_some());
        }
        // Scalars have no fields.
        let holds = |value: &Value| value.is_object() || value.is_array();
        for (key, value) in map.iter_mut().filter(|(key, value)| holds(value) && !always(key)) {
            let below = node.field(key).map(|below| &**below);
            if below.is_none() && node.additional == Additional::Absent {
                // Preserved, and not specified.
                continue;
            }
            let here = self.path.len();
            if self.named {
                self.push(key);
            }
            self.value(value, below, false);
            self.path.truncate(here);
        }
    }

    fn list(&mut self, list: &mut [Value], items: Option<&Node>, kept: bool) {
        let here = self.path.len();
        for (at, item) in list.iter_mut().enumerate() {
            if self.named && (item.is_object() || item.is_array()) {
                // Writing to a string cannot fail.
                let _ = write!(self.path, "[{at}]");
            }
            self.value(item, items, kept);
            self.path.truncate(here);
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
                self.any = true;
                self.record(key);
            }
            stays
        });
    }

    fn record(&mut self, key: &str) {
        if !self.named || self.paths.is_full() {
            return;
        }
        let here = self.path.len();
        self.push(key);
        let path = &self.path;
        self.paths.push_with(|| cut(path.clone()));
        self.path.truncate(here);
    }
}

#[cfg(test)]
#[path = "prune_tests.rs"]
mod tests;
