//! Constant folding: calls whose arguments are all constants are evaluated once, at compile time. Each run is charged the cost
//! of that evaluation.

use crate::eval::Evaluator;
use crate::meter::Meter;
use crate::plan::{Attribute, Base, ComputedConstant, Fold, Node, StepKey};
use crate::value::Value;

/// Maximum cost of a call whose result a program stores.
const MAX_COST: u64 = 1_000;
/// Maximum size of a stored result, in the units of costs.
const MAX_SIZE: u64 = 4_096;

/// Replaces calls of pure functions with constant arguments by their results. Calls that fail, or that the meter cannot pay for,
/// stay as they are.
pub(crate) fn fold(node: &mut Node, meter: &Meter) {
    match node {
        Node::Constant(_) | Node::Computed(_) => {}
        Node::Attribute(attribute) => of_attribute(attribute, meter),
        Node::Logic(_, pair) | Node::OptionalOr(_, pair) | Node::Equality(_, pair) => {
            pair.iter_mut().for_each(|part| fold(part, meter));
        }
        Node::NotStrictlyFalse(inner) | Node::InSet(inner, _) | Node::Append(_, inner) => {
            fold(inner, meter);
        }
        Node::Call(call) => {
            call.arguments.iter_mut().for_each(|argument| fold(argument, meter));
            if call.is_constant()
                && let Some(computed) = evaluate_constant(node, meter)
            {
                *node = Node::Computed(Box::new(computed));
            }
        }
        Node::List(items) => items.iter_mut().for_each(|(item, _)| fold(item, meter)),
        Node::Map(entries) | Node::Object(_, entries) => entries.iter_mut().for_each(|(key, value, _)| {
            fold(key, meter);
            fold(value, meter);
        }),
        Node::Fold(comprehension) => of_comprehension(comprehension, meter),
        Node::Insert(_, entry) => {
            fold(&mut entry.0, meter);
            entry.1.iter_mut().for_each(|value| fold(value, meter));
        }
    }
}

fn of_attribute(attribute: &mut Attribute, meter: &Meter) {
    match &mut attribute.base {
        Base::Variable(_) | Base::Local(_) => {}
        Base::Computed(node) => fold(node, meter),
        Base::Either(parts) => {
            let (condition, then, other) = &mut **parts;
            fold(condition, meter);
            of_attribute(then, meter);
            of_attribute(other, meter);
        }
    }
    for step in &mut attribute.steps {
        if let StepKey::Attribute(index) = &mut step.by {
            of_attribute(index, meter);
        }
    }
}

fn of_comprehension(fold_node: &mut Fold, meter: &Meter) {
    let Fold { range, start, condition, step, result, .. } = fold_node;
    for part in [range, start, condition, step, result] {
        fold(part, meter);
    }
}

/// Evaluates a call without variables. Returns its result and cost.
fn evaluate_constant(node: &Node, meter: &Meter) -> Option<ComputedConstant> {
    if meter.remaining() == 0 {
        return None;
    }
    let mut evaluator: Evaluator<'_, 'static> =
        Evaluator::new(&|_| None, &[], &|_, _| None, MAX_COST, meter, &|| false);
    let value: Value<'static> = evaluator.evaluate(node).ok()?;
    (value.cost_size() <= MAX_SIZE).then(|| ComputedConstant { value, cost: evaluator.cost() })
}
