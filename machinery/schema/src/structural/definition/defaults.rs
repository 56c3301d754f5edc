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
use crate::structural::compiled::Structural;
use crate::structural::embedded::LazyPath;
use crate::structural::location::Location;
use crate::structural::meta::{EmbeddedMetadata, OnTypeMismatch};
use crate::structural::model::{Additional, SchemaNode};
use crate::structural::rules::{EvaluationContext, RuleTree};
use crate::structural::{embedded, printed, prune, rules, validate};
use crate::typed::Typed;

/// Types and rules of the metadata of objects in a schema; the caller of the validation provides the rules.
#[derive(Clone, Copy)]
pub struct MetadataRules<'a> {
    /// Types of ObjectMeta.
    pub types: &'a Typed,
    /// Function that validates the metadata of the object at a path. The object contains only `metadata`.
    pub rules: &'a dyn Fn(&LazyPath<'_>, &Object) -> Vec<Error>,
}

/// Type metadata of an object in which a default is wrapped.
const TYPE_META: [(&str, &str); 2] = [("kind", "Validation"), ("apiVersion", "validation/v1")];

/// Validates all defaults except those below `additionalProperties`, where upstream does not validate them.
pub(super) fn validate(
    schema: &Value,
    location: &Location<'_>,
    pruned: bool,
    (metadata, context): (MetadataRules<'_>, &EvaluationContext<'_>),
    errors: &mut Errors,
) {
    let Ok(compiled) = Structural::compile(schema) else { return };
    let root = compiled.root();
    let budget = rules::MAX_PER_OBJECT;
    let mut walk =
        DefaultsValidator { pruned, types: metadata.types, rules: metadata.rules, budget, context, errors };
    walk.node(
        root,
        location,
        NodeContext { root, is_root: true, in_meta: false, rules: None, steps: &PathSteps::Root },
    );
}

/// Context of a node: the enclosing object, and the steps from that object.
#[derive(Clone, Copy)]
struct NodeContext<'a> {
    /// Node of the nearest embedded resource, or the root.
    root: &'a SchemaNode,
    /// True if that node is the current one, and it is the root.
    is_root: bool,
    /// True below `apiVersion`, `kind` or `metadata` of that object.
    in_meta: bool,
    /// Rules of the node and below, if an enclosing default has already compiled them. They are compiled once, independent of the
    /// number of nested defaults.
    rules: Option<&'a RuleTree>,
    steps: &'a PathSteps<'a>,
}

impl<'a> NodeContext<'a> {
    /// Compiles the rules of a node with a default, unless an enclosing node has already done so, and stores them in `rules_cell`.
    fn with_rules(
        self,
        node: &SchemaNode,
        is_object: bool,
        (rules_cell, meter): (&'a OnceCell<RuleTree>, &Meter),
    ) -> Self {
        if self.rules.is_some() || node.default.is_none() || !node.subtree_flags.rules {
            return self;
        }
        let rules = RuleTree::compile(&Arc::new(node.clone()), is_object, meter);
        Self { rules: rules.map(|tree| rules_cell.get_or_init(|| tree)), ..self }
    }
}

enum PathSteps<'a> {
    Root,
    Field(&'a PathSteps<'a>, &'a str),
    Item(&'a PathSteps<'a>),
}

impl PathSteps<'_> {
    /// Wraps a value in objects and lists that contain only this value, along the steps.
    fn wrap(&self, value: Value) -> Value {
        match self {
            Self::Root => value,
            Self::Field(parent, name) => {
                parent.wrap(Value::Object(Map::from_iter([((*name).to_owned(), value)])))
            }
            Self::Item(parent) => parent.wrap(Value::Array(vec![value])),
        }
    }

    /// Returns the value at the end of the steps.
    fn unwrap_value<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Root => Some(value),
            Self::Field(parent, name) => parent.unwrap_value(value)?.get(name),
            Self::Item(parent) => parent.unwrap_value(value)?.get(0),
        }
    }
}

struct DefaultsValidator<'w> {
    pruned: bool,
    types: &'w Typed,
    rules: &'w dyn Fn(&LazyPath<'_>, &Object) -> Vec<Error>,
    /// Remaining cost budget of expressions.
    budget: i64,
    context: &'w EvaluationContext<'w>,
    errors: &'w mut Errors,
}

impl DefaultsValidator<'_> {
    fn node(&mut self, node: &SchemaNode, location: &Location<'_>, context: NodeContext<'_>) {
        if !has_defaults(node) {
            return;
        }
        let is_object = context.is_root || node.embedded;
        let context = if is_object {
            NodeContext { root: node, in_meta: false, steps: &PathSteps::Root, ..context }
        } else {
            context
        };
        let rules_cell = OnceCell::new();
        let context = context.with_rules(node, is_object, (&rules_cell, &self.context.compilation));
        if let Some(default) = &node.default {
            let path = location.field("default").path();
            let found = if context.in_meta {
                self.in_metadata(default, &path, node, context)
            } else {
                self.standalone(default, &path, node, is_object, context.rules)
            };
            self.errors.0.extend(found);
        }
        if let Some(items) = &node.items {
            let steps = PathSteps::Item(context.steps);
            let rules = context.rules.and_then(|tree| tree.items.as_deref());
            self.node(
                items,
                &location.field("items"),
                NodeContext { is_root: false, rules, steps: &steps, ..context },
            );
        }
        let field_location = location.field("properties");
        for (name, child) in &node.properties {
            let in_meta = context.in_meta || (is_object && prune::is_meta(name));
            let steps = PathSteps::Field(context.steps, name);
            let rules = context.rules.and_then(|tree| tree.property(name));
            let context = NodeContext { is_root: false, in_meta, rules, steps: &steps, ..context };
            self.node(child, &field_location.key(name), context);
        }
    }

    fn standalone(
        &mut self,
        default: &Value,
        path: &Path,
        node: &SchemaNode,
        is_object: bool,
        tree: Option<&RuleTree>,
    ) -> Vec<Error> {
        let mut errors = Vec::new();
        if self.pruned && prune::value(&mut default.clone(), node, is_object) {
            let printed = printed::print_value(default);
            errors.push(Error::invalid_printed(path, &printed, "must not have unknown fields"));
        }
        let mut value = default.clone();
        let mut found = self.metadata(&mut value, node, is_object, path);
        if found.is_empty() {
            found = self.with_rules(&value, node, tree, path);
        }
        errors.append(&mut found);
        errors
    }

    /// Validates a default inside metadata as part of an otherwise empty object.
    fn in_metadata(
        &mut self,
        default: &Value,
        path: &Path,
        node: &SchemaNode,
        context: NodeContext<'_>,
    ) -> Vec<Error> {
        let mut object = context.steps.wrap(default.clone());
        for (name, value) in TYPE_META {
            if let Some(map) = object.as_object_mut().filter(|map| !map.contains_key(name)) {
                map.insert(name.to_owned(), value.into());
            }
        }
        let found = self.metadata(&mut object, context.root, true, &Path::root());
        if found.is_empty() {
            return self.with_rules(default, node, context.rules, path);
        }
        let text = format!("must result in valid metadata: {}", aggregate(&found));
        vec![Error::invalid_printed(path, &printed::print_value(default), &text)]
    }

    /// Validates a default against its schema and, if it matches, with its rules.
    fn with_rules(
        &mut self,
        default: &Value,
        node: &SchemaNode,
        tree: Option<&RuleTree>,
        path: &Path,
    ) -> Vec<Error> {
        let errors = schema_errors(default, node, path);
        let Some(tree) = tree.filter(|_| errors.is_empty()) else { return errors };
        let (errors, remaining) = rules::validate_default(tree, default, path, self.budget, self.context);
        self.budget = remaining;
        errors
    }

    /// Decodes the metadata of all objects in a value and validates it.
    fn metadata(&self, value: &mut Value, node: &SchemaNode, is_object: bool, path: &Path) -> Vec<Error> {
        if let Err(error) =
            EmbeddedMetadata::new(self.types, OnTypeMismatch::Reject).root(value, node, is_object, path)
        {
            return vec![error];
        }
        let mut errors = Bounded::field_errors();
        errors.extend(embedded::validate_value(value, node, is_object, path));
        embedded::visit_embedded_metadata_of_value(value, node, is_object, path, &mut |path_of, metadata| {
            errors.extend((self.rules)(path_of, metadata));
        });
        errors.into_items()
    }
}

/// True if this node or a node below has a default.
fn has_defaults(node: &SchemaNode) -> bool {
    node.default.is_some() || node.subtree_flags.defaults
}

/// Validates a default against its schema. Messages contain the path inside the default.
fn schema_errors(default: &Value, node: &SchemaNode, path: &Path) -> Vec<Error> {
    let mut errors = validate::default(default, node);
    for error in &mut errors {
        error.path = match error.path.as_str() {
            "" | "<nil>" => path.clone(),
            path_inside => path.child(path_inside),
        };
    }
    errors
}

/// True if an accepted schema has a default that pruning would change: then new versions may have such defaults.
pub(super) fn has_unpruned_default(schema: &Value, metadata: MetadataRules<'_>) -> bool {
    let Ok(compiled) = Structural::compile(schema) else { return false };
    let root = compiled.root();
    has_unpruned_below(root, root, metadata.types, &PathSteps::Root)
}

fn has_unpruned_below(node: &SchemaNode, root: &SchemaNode, types: &Typed, steps: &PathSteps<'_>) -> bool {
    if !has_defaults(node) {
        return false;
    }
    let changes = |default: &Value| {
        let mut object = steps.wrap(default.clone());
        // Type mismatches are dropped, so there are no errors.
        let _ =
            EmbeddedMetadata::new(types, OnTypeMismatch::Drop).root(&mut object, root, true, &Path::root());
        prune::value(&mut object, root, true);
        steps.unwrap_value(&object) != Some(default)
    };
    if node.default.as_ref().is_some_and(changes) {
        return true;
    }
    let of = |child: &SchemaNode, steps: PathSteps<'_>| has_unpruned_below(child, root, types, &steps);
    let any_key = match &node.additional {
        Additional::Schema(child) => of(child, PathSteps::Field(steps, "*")),
        _ => false,
    };
    any_key
        || node.items.as_ref().is_some_and(|items| of(items, PathSteps::Item(steps)))
        || node.properties.iter().any(|(name, child)| of(child, PathSteps::Field(steps, name)))
}

#[cfg(test)]
#[path = "defaults_tests.rs"]
pub(super) mod tests;
