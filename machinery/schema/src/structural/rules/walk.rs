//! Walk of rules over an object: each value with its correlated old value.

use std::ops::ControlFlow::{self, Continue};

use portico_machinery::field::Path;
use serde_json::{Map, Value};

use super::context::EvaluationContext;
use super::evaluation::Evaluation;
use super::findings::RuleFindings;
use super::limits::MAX_PER_OBJECT;
use super::ratchet::{CachedPair, Ratchet};
use super::target::RuleTarget;
use super::tree::RuleTree;
use crate::structural::correlate::CorrelatedPair;
use crate::structural::location::Location;
use crate::structural::object_or_value::ObjectOrValue;

/// Evaluates the rules of a schema for an object and its previous state, until `interrupted` returns true.
pub(in crate::structural) fn evaluate_object(
    tree: &RuleTree,
    new: &Map<String, Value>,
    old: Option<&Map<String, Value>>,
    interrupted: &dyn Fn() -> bool,
) -> RuleFindings {
    let root = old.map(|old| CachedPair::new(CorrelatedPair::of_objects(new, old, &tree.node)));
    let (ratchet, location) = (Ratchet::of(root.as_ref()), Location::root(""));
    let context = EvaluationContext::new(interrupted);
    let mut evaluation = Evaluation::new(MAX_PER_OBJECT, &context);
    let (new, old) = (ObjectOrValue::Fields(new), old.map(ObjectOrValue::Fields));
    // The findings are returned even if the evaluation was stopped.
    let _ = evaluate_target(RuleTarget { tree, new, old, ratchet, location: &location }, &mut evaluation);
    evaluation.findings
}

/// Evaluates the rules of a node for a single value (such as a default) within a budget. Also returns the remaining budget,
/// negative if it is used up.
pub(in crate::structural) fn evaluate_value(
    tree: &RuleTree,
    (new, old): (&Value, Option<&Value>),
    path: &Path,
    budget: i64,
    context: &EvaluationContext<'_>,
) -> (RuleFindings, i64) {
    let (ratchet, location) = (Ratchet::default(), Location::root(path.as_str()));
    let mut evaluation = Evaluation::new(budget, context);
    let (new, old) = (ObjectOrValue::Value(new), old.map(ObjectOrValue::Value));
    let _ = evaluate_target(RuleTarget { tree, new, old, ratchet, location: &location }, &mut evaluation);
    (evaluation.findings, evaluation.remaining_budget)
}

/// Evaluates the rules of a value, then those of nested values. Breaks if the evaluation must stop.
fn evaluate_target(target: RuleTarget<'_, '_>, evaluation: &mut Evaluation<'_>) -> ControlFlow<()> {
    if target.new.is_null() {
        return Continue(());
    }
    evaluation.rules(target)?;
    match (target.new.list(), target.new.fields()) {
        (Some(items), _) => list(target, items, evaluation),
        (None, Some(fields)) => self::fields(target, fields, evaluation),
        (None, None) => Continue(()),
    }
}

fn list<'a>(
    parent: RuleTarget<'_, 'a>,
    items: &'a [Value],
    evaluation: &mut Evaluation<'_>,
) -> ControlFlow<()> {
    let Some(tree) = parent.tree.items.as_deref() else { return Continue(()) };
    // Old items are only found by keys, even where errors are not ratcheted.
    let list_pair = match (parent.new, parent.old) {
        (ObjectOrValue::Value(new), Some(ObjectOrValue::Value(old))) => {
            Some(CorrelatedPair::of_values(new, old, &parent.tree.node))
        }
        _ => None,
    };
    for (index, item) in items.iter().enumerate() {
        let old = list_pair.as_ref().and_then(|whole| whole.index(index)).and_then(|pair| pair.old());
        let found = parent.ratchet.pair().and_then(|pair| pair.index(index)).map(CachedPair::new);
        let (ratchet, location) = (parent.ratchet.child(found.as_ref()), parent.location.index(index));
        let (new, old) = (ObjectOrValue::Value(item), old.map(ObjectOrValue::Value));
        evaluate_target(RuleTarget { tree, new, old, ratchet, location: &location }, evaluation)?;
    }
    Continue(())
}

fn fields<'a>(
    parent: RuleTarget<'_, 'a>,
    fields: &'a Map<String, Value>,
    evaluation: &mut Evaluation<'_>,
) -> ControlFlow<()> {
    for (name, value) in fields {
        let (tree, location) = match (parent.tree.property(name), &parent.tree.values) {
            (Some(tree), _) => (tree, parent.location.field(name)),
            (None, Some(tree)) => (&**tree, parent.location.key(name)),
            (None, None) => continue,
        };
        let old = parent.old.and_then(ObjectOrValue::fields).and_then(|old| old.get(name));
        let found = parent.ratchet.pair().and_then(|pair| pair.key(name)).map(CachedPair::new);
        // Not ratcheted: conversion has set both objects to this kind and version.
        let is_tag = parent.ratchet.is_root() && matches!(name.as_str(), "apiVersion" | "kind");
        let ratchet = if is_tag { Ratchet::default() } else { parent.ratchet.child(found.as_ref()) };
        let (new, old) = (ObjectOrValue::Value(value), old.map(ObjectOrValue::Value));
        evaluate_target(RuleTarget { tree, new, old, ratchet, location: &location }, evaluation)?;
    }
    Continue(())
}
