//! Walk of rules over an object: each value with its correlated old value.

use std::ops::ControlFlow::{self, Continue};

use portico_machinery::field::Path;
use serde_json::{Map, Value};

use super::context::Context;
use super::evaluation::Evaluation;
use super::findings::Findings;
use super::limits::MAX_PER_OBJECT;
use super::place::Place;
use super::ratchet::{Correlated, Ratchet};
use super::tree::Tree;
use crate::structural::at::At;
use crate::structural::correlate::Pair;
use crate::structural::held::Held;

/// Evaluates the rules of a schema for an object and its previous state, until `interrupted` returns true.
pub(in crate::structural) fn object(
    tree: &Tree,
    new: &Map<String, Value>,
    old: Option<&Map<String, Value>>,
    interrupted: &dyn Fn() -> bool,
) -> Findings {
    let root = old.map(|old| Correlated::new(Pair::of_objects(new, old, &tree.node)));
    let (ratchet, at) = (Ratchet::of(root.as_ref()), At::root(""));
    let context = Context::new(interrupted);
    let mut evaluation = Evaluation::new(MAX_PER_OBJECT, &context);
    let (new, old) = (Held::Fields(new), old.map(Held::Fields));
    // The findings are returned even if the evaluation was stopped.
    let _ = place(Place { tree, new, old, ratchet, at: &at }, &mut evaluation);
    evaluation.validated
}

/// Evaluates the rules of a node for a single value (such as a default) within a budget. Also returns the remaining budget,
/// negative if it is used up.
pub(in crate::structural) fn value(
    tree: &Tree,
    (new, old): (&Value, Option<&Value>),
    path: &Path,
    budget: i64,
    context: &Context<'_>,
) -> (Findings, i64) {
    let (ratchet, at) = (Ratchet::default(), At::root(path.as_str()));
    let mut evaluation = Evaluation::new(budget, context);
    let (new, old) = (Held::Value(new), old.map(Held::Value));
    let _ = place(Place { tree, new, old, ratchet, at: &at }, &mut evaluation);
    (evaluation.validated, evaluation.left)
}

/// Evaluates the rules of a value, then those of nested values. Breaks if the evaluation must stop.
fn place(place: Place<'_, '_>, evaluation: &mut Evaluation<'_>) -> ControlFlow<()> {
    if place.new.is_null() {
        return Continue(());
    }
    evaluation.rules(place)?;
    match (place.new.list(), place.new.fields()) {
        (Some(items), _) => list(place, items, evaluation),
        (None, Some(fields)) => self::fields(place, fields, evaluation),
        (None, None) => Continue(()),
    }
}

fn list<'a>(around: Place<'_, 'a>, items: &'a [Value], evaluation: &mut Evaluation<'_>) -> ControlFlow<()> {
    let Some(tree) = around.tree.items.as_deref() else { return Continue(()) };
    // Old items are only found by keys, even where errors are not ratcheted.
    let whole = match (around.new, around.old) {
        (Held::Value(new), Some(Held::Value(old))) => Some(Pair::of_values(new, old, &around.tree.node)),
        _ => None,
    };
    for (index, item) in items.iter().enumerate() {
        let old = whole.as_ref().and_then(|whole| whole.index(index)).and_then(|pair| pair.old());
        let found = around.ratchet.pair().and_then(|pair| pair.index(index)).map(Correlated::new);
        let (ratchet, at) = (around.ratchet.below(found.as_ref()), around.at.index(index));
        let (new, old) = (Held::Value(item), old.map(Held::Value));
        place(Place { tree, new, old, ratchet, at: &at }, evaluation)?;
    }
    Continue(())
}

fn fields<'a>(
    around: Place<'_, 'a>,
    fields: &'a Map<String, Value>,
    evaluation: &mut Evaluation<'_>,
) -> ControlFlow<()> {
    for (name, value) in fields {
        let (tree, at) = match (around.tree.property(name), &around.tree.values) {
            (Some(tree), _) => (tree, around.at.field(name)),
            (None, Some(tree)) => (&**tree, around.at.key(name)),
            (None, None) => continue,
        };
        let old = around.old.and_then(Held::fields).and_then(|old| old.get(name));
        let found = around.ratchet.pair().and_then(|pair| pair.key(name)).map(Correlated::new);
        // Not ratcheted: conversion has set both objects to this kind and version.
        let is_tag = around.ratchet.is_of_root() && matches!(name.as_str(), "apiVersion" | "kind");
        let ratchet = if is_tag { Ratchet::default() } else { around.ratchet.below(found.as_ref()) };
        let (new, old) = (Held::Value(value), old.map(Held::Value));
        place(Place { tree, new, old, ratchet, at: &at }, evaluation)?;
    }
    Continue(())
}
