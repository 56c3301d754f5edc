//! Validation of defaults: each must match its own schema and must not contain unspecified fields.
//!
//! A default inside the metadata of an object is validated as part of that object, because it is not valid on its own.

use std::cell::OnceCell;
use std::sync::Arc;

use portico_cel::Meter;
use portico_machinery::field::{Error, Path};
use portico_machinery::{Bounded, Object, aggregate};
use serde_json::{Map, Value};

use super::errors::Errors;
use crate::structural::at::At;
use crate::structural::compiled::Structural;
use crate::structural::embedded::Place;
use crate::structural::meta::{Embedded, Misfits};
use crate::structural::model::{Additional, Node};
use crate::structural::rules::{Context, Tree};
use crate::structural::{embedded, printed, prune, rules, validate};
use crate::typed::Typed;

/// Types and rules of the metadata of objects in a schema; the caller of the validation provides the rules.
#[derive(Clone, Copy)]
pub struct Metadata<'a> {
    /// Types of ObjectMeta.
    pub types: &'a Typed,
    /// Function that validates the metadata of the object at a path. The object contains only `metadata`.
    pub rules: &'a dyn Fn(&Place<'_>, &Object) -> Vec<Error>,
}

/// Type metadata of an object in which a default is wrapped.
const TYPE_META: [(&str, &str); 2] = [("kind", "Validation"), ("apiVersion", "validation/v1")];

/// Validates all defaults except those below `additionalProperties`, where upstream does not validate them.
pub(super) fn validate(
    schema: &Value,
    at: &At<'_>,
    pruned: bool,
    (metadata, context): (Metadata<'_>, &Context<'_>),
    errors: &mut Errors,
) {
    let Ok(compiled) = Structural::compile(schema) else { return };
    let root = compiled.root();
    let budget = rules::MAX_PER_OBJECT;
    let mut walk = Walk { pruned, types: metadata.types, rules: metadata.rules, budget, context, errors };
    walk.node(root, at, Around { root, is_root: true, in_meta: false, rules: None, steps: &Steps::Root });
}

/// Context of a node: the enclosing object, and the steps from that object.
#[derive(Clone, Copy)]
struct Around<'a> {
    /// Node of the nearest embedded resource, or the root.
    root: &'a Node,
    /// True if that node is the current one, and it is the root.
    is_root: bool,
    /// True below `apiVersion`, `kind` or `metadata` of that object.
    in_meta: bool,
    /// Rules of the node and below, if an enclosing default has already compiled them. They are compiled once, independent of the
    /// number of nested defaults.
    rules: Option<&'a Tree>,
    steps: &'a Steps<'a>,
}

impl<'a> Around<'a> {
    /// Compiles the rules of a node with a default, unless an enclosing node has already done so, and stores them in `kept`.
    fn with_rules(self, node: &Node, is_object: bool, (kept, meter): (&'a OnceCell<Tree>, &Meter)) -> Self {
        if self.rules.is_some() || node.default.is_none() || !node.marks.rules {
            return self;
        }
        let rules = Tree::compile(&Arc::new(node.clone()), is_object, meter);
        Self { rules: rules.map(|tree| kept.get_or_init(|| tree)), ..self }
    }
}

enum Steps<'a> {
    Root,
    Field(&'a Steps<'a>, &'a str),
    Item(&'a Steps<'a>),
}

impl Steps<'_> {
    /// Wraps a value in objects and lists that contain only this value, along the steps.
    fn around(&self, value: Value) -> Value {
        match self {
            Self::Root => value,
            Self::Field(above, name) => {
                above.around(Value::Object(Map::from_iter([((*name).to_owned(), value)])))
            }
            Self::Item(above) => above.around(Value::Array(vec![value])),
        }
    }

    /// Returns the value at the end of the steps.
    fn inside<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Root => Some(value),
            Self::Field(above, name) => above.inside(value)?.get(name),
            Self::Item(above) => above.inside(value)?.get(0),
        }
    }
}

struct Walk<'w> {
    pruned: bool,
    types: &'w Typed,
    rules: &'w dyn Fn(&Place<'_>, &Object) -> Vec<Error>,
    /// Remaining cost budget of expressions.
    budget: i64,
    context: &'w Context<'w>,
    errors: &'w mut Errors,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node, at: &At<'_>, around: Around<'_>) {
        if !has_defaults(node) {
            return;
        }
        let is_object = around.is_root || node.embedded;
        let around = if is_object {
            Around { root: node, in_meta: false, steps: &Steps::Root, ..around }
        } else {
            around
        };
        let kept = OnceCell::new();
        let around = around.with_rules(node, is_object, (&kept, &self.context.compilation));
        if let Some(default) = &node.default {
            let path = at.field("default").path();
            let found = if around.in_meta {
                self.in_metadata(default, &path, node, around)
            } else {
                self.alone(default, &path, node, is_object, around.rules)
            };
            self.errors.0.extend(found);
        }
        if let Some(items) = &node.items {
            let steps = Steps::Item(around.steps);
            let rules = around.rules.and_then(|tree| tree.items.as_deref());
            self.node(items, &at.field("items"), Around { is_root: false, rules, steps: &steps, ..around });
        }
        let here = at.field("properties");
        for (name, below) in &node.properties {
            let in_meta = around.in_meta || (is_object && prune::is_meta(name));
            let steps = Steps::Field(around.steps, name);
            let rules = around.rules.and_then(|tree| tree.property(name));
            let around = Around { is_root: false, in_meta, rules, steps: &steps, ..around };
            self.node(below, &here.key(name), around);
        }
    }

    fn alone(
        &mut self,
        default: &Value,
        path: &Path,
        node: &Node,
        is_object: bool,
        tree: Option<&Tree>,
    ) -> Vec<Error> {
        let mut errors = Vec::new();
        if self.pruned && prune::value(&mut default.clone(), node, is_object) {
            let shown = printed::value(default);
            errors.push(Error::invalid_printed(path, &shown, "must not have unknown fields"));
        }
        let mut value = default.clone();
        let mut found = self.metadata(&mut value, node, is_object, path);
        if found.is_empty() {
            found = self.along(&value, node, tree, path);
        }
        errors.append(&mut found);
        errors
    }

    /// Validates a default inside metadata as part of an otherwise empty object.
    fn in_metadata(&mut self, default: &Value, path: &Path, node: &Node, around: Around<'_>) -> Vec<Error> {
        let mut object = around.steps.around(default.clone());
        for (name, value) in TYPE_META {
            if let Some(map) = object.as_object_mut().filter(|map| !map.contains_key(name)) {
                map.insert(name.to_owned(), value.into());
            }
        }
        let found = self.metadata(&mut object, around.root, true, &Path::root());
        if found.is_empty() {
            return self.along(default, node, around.rules, path);
        }
        let text = format!("must result in valid metadata: {}", aggregate(&found));
        vec![Error::invalid_printed(path, &printed::value(default), &text)]
    }

    /// Validates a default against its schema and, if it matches, with its rules.
    fn along(&mut self, default: &Value, node: &Node, tree: Option<&Tree>, path: &Path) -> Vec<Error> {
        let errors = along(default, node, path);
        let Some(tree) = tree.filter(|_| errors.is_empty()) else { return errors };
        let (errors, left) = rules::validate_default(tree, default, path, self.budget, self.context);
        self.budget = left;
        errors
    }

    /// Decodes the metadata of all objects in a value and validates it.
    fn metadata(&self, value: &mut Value, node: &Node, is_object: bool, path: &Path) -> Vec<Error> {
        if let Err(error) = Embedded::new(self.types, Misfits::Refuse).whole(value, node, is_object, path) {
            return vec![error];
        }
        let mut errors = Bounded::field_errors();
        errors.extend(embedded::validate_value(value, node, is_object, path));
        embedded::metadata_of_value(value, node, is_object, path, &mut |place, alone| {
            errors.extend((self.rules)(place, alone));
        });
        errors.into_items()
    }
}

/// True if this node or a node below has a default.
fn has_defaults(node: &Node) -> bool {
    node.default.is_some() || node.marks.defaults
}

/// Validates a default against its schema. Messages contain the path inside the default.
fn along(default: &Value, node: &Node, path: &Path) -> Vec<Error> {
    let mut errors = validate::default(default, node);
    for error in &mut errors {
        error.path = match error.path.as_str() {
            "" | "<nil>" => path.clone(),
            below => path.child(below),
        };
    }
    errors
}

/// True if an accepted schema has a default that pruning would change: then new versions may have such defaults.
pub(super) fn has_unpruned(schema: &Value, metadata: Metadata<'_>) -> bool {
    let Ok(compiled) = Structural::compile(schema) else { return false };
    let root = compiled.root();
    unpruned(root, root, metadata.types, &Steps::Root)
}

fn unpruned(node: &Node, root: &Node, types: &Typed, steps: &Steps<'_>) -> bool {
    if !has_defaults(node) {
        return false;
    }
    let changes = |default: &Value| {
        let mut object = steps.around(default.clone());
        // Type mismatches are dropped, so there are no errors.
        let _ = Embedded::new(types, Misfits::Drop).whole(&mut object, root, true, &Path::root());
        prune::value(&mut object, root, true);
        steps.inside(&object) != Some(default)
    };
    if node.default.as_ref().is_some_and(changes) {
        return true;
    }
    let of = |below: &Node, steps: Steps<'_>| unpruned(below, root, types, &steps);
    let any_key = match &node.additional {
        Additional::Schema(below) => of(below, Steps::Field(steps, "*")),
        _ => false,
    };
    any_key
        || node.items.as_ref().is_some_and(|items| of(items, Steps::Item(steps)))
        || node.properties.iter().any(|(name, below)| of(below, Steps::Field(steps, name)))
}

#[cfg(test)]
#[path = "defaults_tests.rs"]
pub(super) mod tests;
