//! Lists: version 3 of upstream's extension: `slice`, `flatten`, `distinct`, `lists.range`, `reverse`, `sort`, and the functions
//! to which the macro `sortBy` expands.

use std::cmp::Ordering;

use super::declaration::Library;
use crate::error::EvalError;
use crate::function::{Call, CallEstimate, CallSizes, Function, Overload};
use crate::size::{CostEstimate, LIST_CREATE, STRING_TRAVERSAL, SizeEstimate};
use crate::types::Type;
use crate::value::{List, Value, compare};

/// Levels of a list that `flatten` flattens.
///
/// Limit (Expressions): the expression fails.
const MAX_DEPTH: usize = 128;

/// Types whose values have an order, with ids of the overloads of `sort` and `@sortByAssociatedKeys`.
const COMPARABLE: [(Type, &str, &str); 8] = [
    (Type::Int, "list_int_sort", "list_int_sortByAssociatedKeys"),
    (Type::Uint, "list_uint_sort", "list_uint_sortByAssociatedKeys"),
    (Type::Double, "list_double_sort", "list_double_sortByAssociatedKeys"),
    (Type::Bool, "list_bool_sort", "list_bool_sortByAssociatedKeys"),
    (
        Type::Duration,
        "list_google.protobuf.Duration_sort",
        "list_google.protobuf.Duration_sortByAssociatedKeys",
    ),
    (
        Type::Timestamp,
        "list_google.protobuf.Timestamp_sort",
        "list_google.protobuf.Timestamp_sortByAssociatedKeys",
    ),
    (Type::String, "list_string_sort", "list_string_sortByAssociatedKeys"),
    (Type::Bytes, "list_bytes_sort", "list_bytes_sortByAssociatedKeys"),
];

pub(super) fn library() -> Library {
    Library {
        name: "cel.lib.ext.lists",
        functions: [shape_functions(), order_functions()].concat(),
        ..Library::default()
    }
}

fn shape_functions() -> Vec<Function> {
    let list = || Type::list(Type::param("T"));
    let dynamic = || Type::list(Type::Dyn);
    let of_list = |id, run| Overload::member(id, vec![list()], list(), run);
    vec![
        Function::new(
            "slice",
            vec![
                Overload::member("list_slice", vec![list(), Type::Int, Type::Int], list(), slice)
                    .costs(slice_estimate, output_cost),
            ],
        ),
        Function::new(
            "flatten",
            vec![
                Overload::member("list_flatten", vec![Type::list(list())], list(), flatten)
                    .costs(flatten_estimate, flatten_cost),
                Overload::member("list_flatten_int", vec![dynamic(), Type::Int], dynamic(), flatten)
                    .costs(flatten_estimate, flatten_cost),
            ],
        ),
        Function::new(
            "lists.range",
            vec![
                Overload::global("lists_range", vec![Type::Int], Type::list(Type::Int), range)
                    .costs(range_estimate, output_cost),
            ],
        ),
        Function::new("reverse", vec![of_list("list_reverse", reverse).costs(reverse_estimate, output_cost)]),
        Function::new(
            "distinct",
            vec![of_list("list_distinct", distinct).costs(distinct_estimate, self_compare_cost)],
        ),
    ]
}

fn order_functions() -> Vec<Function> {
    let list = || Type::list(Type::param("T"));
    let sort = |(ty, id, _): &(Type, &'static str, &str)| {
        let of = Type::list(ty.clone());
        let estimate = if texts(ty) { sort_texts_estimate } else { sort_estimate };
        Overload::member(id, vec![of.clone()], of, sort).costs(estimate, self_compare_cost)
    };
    let sort_by = |(ty, _, id): &(Type, &str, &'static str)| {
        let estimate = if texts(ty) { sort_by_texts_estimate } else { sort_by_estimate };
        Overload::member(id, vec![list(), Type::list(ty.clone())], list(), sort_by)
            .costs(estimate, keys_compare_cost)
    };
    vec![
        Function::new("sort", COMPARABLE.iter().map(sort).collect()),
        Function::new("@sortByAssociatedKeys", COMPARABLE.iter().map(sort_by).collect()),
    ]
}

/// Returns the receiver as a list.
fn list<'c, 'v>(call: &Call<'c, 'v>) -> Result<&'c List<'v>, EvalError> {
    call.list(0)
}

fn slice<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let (list, start, end) = (list(call)?, call.int(1)?, call.int(2)?);
    let refused = |reason: &str| EvalError::new(format!("cannot slice({start}, {end}), {reason}"));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return Err(refused("negative indexes not supported"));
    };
    if from > to {
        return Err(refused("start index must be less than or equal to end index"));
    }
    if list.len() < to {
        return Err(refused(&format!("list is length {}", list.len())));
    }
    call.take(to - from)?;
    (from..to).filter_map(|index| list.get(index)).collect::<Result<_, _>>().map(Value::list)
}

fn flatten<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let levels = if call.arguments.len() > 1 { call.int(1)? } else { 1 };
    let levels = usize::try_from(levels).map_err(|_| EvalError::new("level must be non-negative"))?;
    let mut flat = Vec::new();
    flatten_into(call, &mut flat, list(call)?, levels.min(MAX_DEPTH))?;
    Ok(Value::list(flat))
}

fn flatten_into<'v>(
    call: &Call<'_, 'v>,
    flat: &mut Vec<Value<'v>>,
    list: &List<'v>,
    levels: usize,
) -> Result<(), EvalError> {
    call.take_items(list.len())?;
    for item in list.iter() {
        match (item?, levels.checked_sub(1)) {
            (Value::List(nested), Some(levels)) => flatten_into(call, flat, &nested, levels)?,
            (item, _) => flat.push(item),
        }
    }
    Ok(())
}

/// Returns the numbers from zero to the argument, exclusive. A list that exceeds the remaining budget is not created.
fn range<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let end = call.int(0)?;
    if u64::try_from(end).is_ok_and(|end| end > call.budget) {
        return Err(EvalError::Budget);
    }
    Ok(Value::list((0..end).map(Value::Int).collect()))
}

fn reverse<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    call.take(list(call)?.len())?;
    let mut items = list(call)?.to_vec()?;
    items.reverse();
    Ok(Value::list(items))
}

fn distinct<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let list = list(call)?;
    within_budget(call, list)?;
    let mut unique: Vec<Value<'v>> = Vec::with_capacity(list.len());
    'items: for item in list.iter() {
        let item = item?;
        for other in &unique {
            if call.equal(&item, other)? {
                continue 'items;
            }
        }
        unique.push(item);
    }
    Ok(Value::list(unique))
}

/// Checks the budget for comparing each item with each other in advance.
fn within_budget(call: &Call<'_, '_>, list: &List<'_>) -> Result<(), EvalError> {
    let length = list.len() as u64;
    if length.saturating_mul(length) > call.budget { Err(EvalError::Budget) } else { Ok(()) }
}

fn sort<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let list = list(call)?;
    take_sort(call, list)?;
    let items = list.to_vec()?;
    sorted(&items, &items)
}

fn sort_by<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let (list, keys) = (list(call)?, call.list(1)?);
    call.take(list.len())?;
    take_sort(call, keys)?;
    sorted(&list.to_vec()?, &keys.to_vec()?)
}

/// Counts the comparisons of a sort: each key is compared about as often as the logarithm of the number of keys.
fn take_sort(call: &Call<'_, '_>, keys: &List<'_>) -> Result<(), EvalError> {
    let times = 1 + keys.len().checked_ilog2().unwrap_or(0) as usize;
    call.take(keys.len().saturating_mul(times))?;
    let bytes: usize = keys.iter().flatten().map(|key| key.bytes()).fold(0, usize::saturating_add);
    call.take_text(bytes.saturating_mul(times))
}

/// Sorts items by their keys.
fn sorted<'v>(items: &[Value<'v>], keys: &[Value<'v>]) -> Result<Value<'v>, EvalError> {
    if items.len() != keys.len() {
        return Err(EvalError::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} elements respectively",
            items.len(),
            keys.len()
        )));
    }
    let Some(first) = keys.first() else { return Ok(Value::list(Vec::new())) };
    if compare(first, first).is_none() && !matches!(first, Value::Double(_)) {
        return Err(EvalError::new("list elements must be comparable"));
    }
    if keys.iter().any(|key| std::mem::discriminant(key) != std::mem::discriminant(first)) {
        return Err(EvalError::new("list elements must have the same type"));
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|one, two| total_order(&keys[*one], &keys[*two]));
    Ok(Value::list(order.into_iter().map(|index| items[index].clone()).collect()))
}

/// Compares in a total order: NaN comes last, so that sorting is consistent.
fn total_order(one: &Value<'_>, two: &Value<'_>) -> Ordering {
    let nan = |value: &Value<'_>| matches!(value, Value::Double(number) if number.is_nan());
    compare(one, two).unwrap_or_else(|| nan(one).cmp(&nan(two)))
}

/// Estimates a call that creates a list: a cost per item, and the cost of the list.
fn list_creation_estimate(factor: f64, size: SizeEstimate) -> CallEstimate {
    let cost = size.times_factor(factor).plus(CostEstimate::ONE).plus(CostEstimate::fixed(LIST_CREATE));
    CallEstimate::sized(cost, size)
}

fn literal(call: &dyn CallSizes, index: usize, otherwise: u64) -> u64 {
    call.literal_int(index).map_or(otherwise, |number| u64::try_from(number).unwrap_or(0))
}

fn slice_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let size = call.target().filter(|_| call.arguments() == 2)?;
    let (start, end) = (literal(call, 0, 0), literal(call, 1, size.max));
    // As in upstream, the difference wraps.
    Some(list_creation_estimate(1.0, SizeEstimate::fixed(end.wrapping_sub(start))))
}

fn range_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    (call.target().is_none() && call.arguments() == 1)
        .then(|| list_creation_estimate(1.0, SizeEstimate::fixed(literal(call, 0, u64::MAX))))
}

fn reverse_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    call.target().filter(|_| call.arguments() == 0).map(|size| list_creation_estimate(1.0, size))
}

#[expect(clippy::cast_precision_loss, reason = "as upstream")]
fn flatten_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let size = call.target().filter(|_| call.arguments() <= 1)?;
    let levels = if call.arguments() == 1 { literal(call, 0, u64::MAX) } else { 1 };
    Some(list_creation_estimate(levels as f64, size))
}

fn distinct_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    call.target().filter(|_| call.arguments() == 0).map(|size| list_creation_estimate(2.0, size.times(size)))
}

/// True if comparing two values of a type reads them character by character.
fn texts(ty: &Type) -> bool {
    matches!(ty, Type::String | Type::Bytes)
}

/// Estimates comparing each key with each other.
fn pairwise_estimate(keys: SizeEstimate, factor: f64) -> CallEstimate {
    list_creation_estimate(factor, keys.times(keys))
}

fn sort_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    call.target().filter(|_| call.arguments() == 0).map(|keys| pairwise_estimate(keys, 2.0))
}

fn sort_texts_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    call.target()
        .filter(|_| call.arguments() == 0)
        .map(|keys| pairwise_estimate(keys, 2.0 + STRING_TRAVERSAL))
}

fn sort_by_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    call.target().filter(|_| call.arguments() == 1).map(|_| pairwise_estimate(call.argument(0), 2.0))
}

fn sort_by_texts_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let factor = 2.0 + STRING_TRAVERSAL;
    call.target().filter(|_| call.arguments() == 1).map(|_| pairwise_estimate(call.argument(0), factor))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "rounded down as upstream"
)]
fn list_creation_cost(factor: f64, size: u64) -> u64 {
    ((size as f64 * factor) as u64).saturating_add(1 + LIST_CREATE)
}

fn output_cost(_: &[Value<'_>], result: &Value<'_>) -> u64 {
    list_creation_cost(1.0, result.cost_size())
}

#[expect(clippy::cast_precision_loss, reason = "as upstream")]
fn flatten_cost(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    let levels = match arguments.get(1) {
        Some(Value::Int(levels)) => *levels as f64,
        _ => 1.0,
    };
    list_creation_cost(levels, super::costs::size(arguments, 0))
}

fn self_compare_cost(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    compare_cost(arguments.first())
}

fn keys_compare_cost(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    compare_cost(arguments.get(1))
}

fn compare_cost(keys: Option<&Value<'_>>) -> u64 {
    let Some(Value::List(keys)) = keys else { return list_creation_cost(2.0, 0) };
    let size = keys.len() as u64;
    let texts = matches!(keys.get(0), Some(Ok(Value::String(_) | Value::Bytes(_))));
    list_creation_cost(if texts { 2.0 + STRING_TRAVERSAL } else { 2.0 }, size.saturating_mul(size))
}
