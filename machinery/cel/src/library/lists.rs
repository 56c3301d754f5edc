//! Kubernetes' lists: `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`.

use std::cmp::Ordering;

use super::costs;
use super::declaration::Library;
use crate::error::EvalError;
use crate::function::{Call, Function, Implementation, Overload};
use crate::types::Type;
use crate::value::{Duration, Value, compare};

/// Types whose values have an order, with ids of the overloads of `isSorted`, `max` and `min`.
const COMPARABLE: [(Type, [&str; 3]); 8] = [
    (Type::Int, ["list_int_is_sorted_bool", "list_int_max_int", "list_int_min_int"]),
    (Type::Uint, ["list_uint_is_sorted_bool", "list_uint_max_uint", "list_uint_min_uint"]),
    (Type::Double, ["list_double_is_sorted_bool", "list_double_max_double", "list_double_min_double"]),
    (Type::Bool, ["list_bool_is_sorted_bool", "list_bool_max_bool", "list_bool_min_bool"]),
    (
        Type::Duration,
        ["list_duration_is_sorted_bool", "list_duration_max_duration", "list_duration_min_duration"],
    ),
    (
        Type::Timestamp,
        ["list_timestamp_is_sorted_bool", "list_timestamp_max_timestamp", "list_timestamp_min_timestamp"],
    ),
    (Type::String, ["list_string_is_sorted_bool", "list_string_max_string", "list_string_min_string"]),
    (Type::Bytes, ["list_bytes_is_sorted_bool", "list_bytes_max_bytes", "list_bytes_min_bytes"]),
];

pub(super) fn library() -> Library {
    let each = |id_index: usize, run: Implementation| -> Vec<Overload> {
        let overload = |(ty, ids): &(Type, [&'static str; 3])| {
            let result = if id_index == 0 { Type::Bool } else { ty.clone() };
            with_item_costs(Overload::member(ids[id_index], vec![Type::list(ty.clone())], result, run))
        };
        COMPARABLE.iter().map(overload).collect()
    };
    let item = || Type::param("A");
    let index =
        |id, run| with_item_costs(Overload::member(id, vec![Type::list(item()), item()], Type::Int, run));
    Library {
        name: "kubernetes.lists",
        functions: vec![
            Function::new("isSorted", each(0, is_sorted)),
            Function::new("max", each(1, max)),
            Function::new("min", each(2, min)),
            Function::new("sum", sums()),
            Function::new("indexOf", vec![index("list_a_index_of_int", index_of)]),
            Function::new("lastIndexOf", vec![index("list_a_last_index_of_int", last_index_of)]),
        ],
        ..Library::default()
    }
}

fn sums() -> Vec<Overload> {
    let overload =
        |id, ty: Type, run| with_item_costs(Overload::member(id, vec![Type::list(ty.clone())], ty, run));
    vec![
        overload("list_int_sum_int", Type::Int, sum_ints),
        overload("list_uint_sum_uint", Type::Uint, sum_uints),
        overload("list_double_sum_double", Type::Double, sum_doubles),
        overload("list_duration_sum_duration", Type::Duration, sum_durations),
    ]
}

fn with_item_costs(overload: Overload) -> Overload {
    overload.costs_by_name(costs::compare_items_estimate, costs::compare_items)
}

/// Checks that an item can be compared with others of its type. Items of different types, and NaN, are not comparable with each
/// other and keep their positions.
fn comparable<'v>(item: Result<Value<'v>, EvalError>) -> Result<Value<'v>, EvalError> {
    let item = item?;
    match &item {
        Value::Double(_) => Ok(item),
        other if compare(other, other).is_some() => Ok(item),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn is_sorted<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let mut before = None;
    for item in costs::visited_list(call)?.iter() {
        let item = comparable(item)?;
        if before.as_ref().is_some_and(|before| compare(before, &item) == Some(Ordering::Greater)) {
            return Ok(Value::Bool(false));
        }
        before = Some(item);
    }
    Ok(Value::Bool(true))
}

fn extremum<'v>(call: &Call<'_, 'v>, name: &str, better: Ordering) -> Result<Value<'v>, EvalError> {
    let mut best = None;
    for item in costs::visited_list(call)?.iter() {
        let item = comparable(item)?;
        best = Some(match best {
            Some(best) if compare(&best, &item) != Some(better) => best,
            _ => item,
        });
    }
    best.ok_or_else(|| EvalError::new(format!("{name} called on empty list")))
}

fn max<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    extremum(call, "max", Ordering::Less)
}

fn min<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    extremum(call, "min", Ordering::Greater)
}

/// Adds up the items of a list, starting with the sum of an empty list.
fn sum<'v, T>(
    call: &Call<'_, 'v>,
    zero: T,
    add: impl Fn(T, Value<'v>) -> Result<T, EvalError>,
) -> Result<T, EvalError> {
    costs::visited_list(call)?.iter().try_fold(zero, |sum, item| add(sum, item?))
}

fn sum_ints<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    sum(call, 0_i64, |sum, item| {
        sum.checked_add(i64::try_from(&item)?).ok_or_else(|| EvalError::new("integer overflow"))
    })
    .map(Value::Int)
}

fn sum_uints<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    sum(call, 0_u64, |sum, item| match item {
        Value::Uint(item) => sum.checked_add(item).ok_or_else(|| EvalError::new("unsigned integer overflow")),
        _ => Err(EvalError::no_such_overload()),
    })
    .map(Value::Uint)
}

fn sum_doubles<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    sum(call, 0.0, |sum, item| match item {
        Value::Double(item) => Ok(sum + item),
        _ => Err(EvalError::no_such_overload()),
    })
    .map(Value::Double)
}

fn sum_durations<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    sum(call, Duration { nanos: 0 }, |sum, item| match item {
        Value::Duration(item) => sum
            .nanos
            .checked_add(item.nanos)
            .map(|nanos| Duration { nanos })
            .ok_or_else(|| EvalError::new("integer overflow")),
        _ => Err(EvalError::no_such_overload()),
    })
    .map(Value::Duration)
}

fn index_of<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let (list, needle) = (costs::visited_list(call)?, call.argument(1)?);
    position(call, list.iter().enumerate(), needle)
}

fn last_index_of<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let (list, needle) = (costs::visited_list(call)?, call.argument(1)?);
    let backwards = (0..list.len()).rev().filter_map(|index| Some((index, list.get(index)?)));
    position(call, backwards, needle)
}

fn position<'v>(
    call: &Call<'_, 'v>,
    items: impl Iterator<Item = (usize, Result<Value<'v>, EvalError>)>,
    needle: &Value<'v>,
) -> Result<Value<'v>, EvalError> {
    for (index, item) in items {
        if call.equal(&item?, needle)? {
            return Ok(Value::Int(i64::try_from(index).unwrap_or(i64::MAX)));
        }
    }
    Ok(Value::Int(-1))
}
