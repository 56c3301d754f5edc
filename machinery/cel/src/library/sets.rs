//! Lists as sets, ignoring their order: `sets.contains`, `sets.equivalent`, `sets.intersects`.

use super::costs;
use super::declaration::Library;
use crate::error::EvalError;
use crate::function::{Call, CallEstimate, CallSizes, Function, Overload};
use crate::size::CostEstimate;
use crate::types::Type;
use crate::value::{List, Value};

pub(super) fn library() -> Library {
    let list = || Type::list(Type::param("T"));
    let overload = |id, run| Overload::global(id, vec![list(), list()], Type::Bool, run);
    Library {
        name: "cel.lib.ext.sets",
        functions: vec![
            Function::new(
                "sets.contains",
                vec![overload("list_sets_contains_list", contains).costs(estimate_once, cost_once)],
            ),
            Function::new(
                "sets.equivalent",
                vec![overload("list_sets_equivalent_list", equivalent).costs(estimate_twice, cost_twice)],
            ),
            Function::new(
                "sets.intersects",
                vec![overload("list_sets_intersects_list", intersects).costs(estimate_once, cost_once)],
            ),
        ],
        ..Library::default()
    }
}

/// True if a list has an item.
///
/// # Errors
/// JSON that does not match its declaration.
fn has<'v>(call: &Call<'_, 'v>, list: &List<'v>, item: &Value<'v>) -> Result<bool, EvalError> {
    for other in list.iter() {
        if call.equal(item, &other?)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Checks the budget before each item is compared with each other, at one unit per pair.
fn within_budget(call: &Call<'_, '_>) -> Result<(), EvalError> {
    if pairs(call.arguments) > call.budget { Err(EvalError::Budget) } else { Ok(()) }
}

fn has_all<'v>(call: &Call<'_, 'v>, list: &List<'v>, part: &List<'v>) -> Result<bool, EvalError> {
    for item in part.iter() {
        call.take(1)?;
        if !has(call, list, &item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn contains<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    within_budget(call)?;
    has_all(call, call.list(0)?, call.list(1)?).map(Value::Bool)
}

fn equivalent<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    within_budget(call)?;
    let (one, two) = (call.list(0)?, call.list(1)?);
    Ok(Value::Bool(has_all(call, one, two)? && has_all(call, two, one)?))
}

fn intersects<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    within_budget(call)?;
    let two = call.list(1)?;
    for item in call.list(0)?.iter() {
        call.take(1)?;
        if has(call, two, &item?)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

/// Estimates comparing each item with each other.
fn estimate(call: &dyn CallSizes, factor: f64) -> Option<CallEstimate> {
    let pairs = (call.arguments() == 2).then(|| call.argument(0).times(call.argument(1)))?;
    Some(CallEstimate::cost(pairs.times_factor(factor).plus(CostEstimate::ONE)))
}

fn estimate_once(call: &dyn CallSizes) -> Option<CallEstimate> {
    estimate(call, 1.0)
}

fn estimate_twice(call: &dyn CallSizes) -> Option<CallEstimate> {
    estimate(call, 2.0)
}

fn pairs(arguments: &[Value<'_>]) -> u64 {
    costs::size(arguments, 0).saturating_mul(costs::size(arguments, 1))
}

fn cost_once(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    pairs(arguments).saturating_add(1)
}

fn cost_twice(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    pairs(arguments).saturating_mul(2).saturating_add(1)
}
