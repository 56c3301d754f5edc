//! `+`, `-`, `*`, `/`, `%` on numbers, text, bytes, lists, and time; overflow is an error.

use std::sync::Arc;

use crate::ast::operator;
use crate::decl::ListKind;
use crate::error::EvalError;
use crate::function::{Call, CallEstimate, CallSizes, Function, Overload};
use crate::size::{CostEstimate, STRING_TRAVERSAL, scale};
use crate::types::Type;
use crate::value::{Duration, List, Text, Value};

pub(super) fn functions() -> Vec<Function> {
    vec![
        Function::new(operator::ADD, additions()),
        Function::new(operator::SUBTRACT, subtractions()),
        Function::new(
            operator::MULTIPLY,
            numbers(["multiply_double", "multiply_int64", "multiply_uint64"], multiply),
        ),
        Function::new(operator::DIVIDE, numbers(["divide_double", "divide_int64", "divide_uint64"], divide)),
        Function::new(
            operator::MODULO,
            vec![
                Overload::global("modulo_int64", vec![Type::Int, Type::Int], Type::Int, modulo),
                Overload::global("modulo_uint64", vec![Type::Uint, Type::Uint], Type::Uint, modulo),
            ],
        ),
        Function::new(
            operator::NEGATE,
            vec![
                Overload::global("negate_double", vec![Type::Double], Type::Double, negate),
                Overload::global("negate_int64", vec![Type::Int], Type::Int, negate),
            ],
        ),
    ]
}

fn numbers(ids: [&'static str; 3], run: crate::function::Implementation) -> Vec<Overload> {
    let types = [Type::Double, Type::Int, Type::Uint];
    ids.into_iter()
        .zip(types)
        .map(|(id, ty)| Overload::global(id, vec![ty.clone(), ty.clone()], ty, run))
        .collect()
}

fn additions() -> Vec<Overload> {
    let list = || Type::list(Type::param("A"));
    let two = |id, ty: Type| Overload::global(id, vec![ty.clone(), ty.clone()], ty, add);
    vec![
        two("add_bytes", Type::Bytes).costs(joined_estimate, concatenation_cost),
        two("add_double", Type::Double),
        two("add_duration_duration", Type::Duration),
        Overload::global(
            "add_duration_timestamp",
            vec![Type::Duration, Type::Timestamp],
            Type::Timestamp,
            add,
        ),
        Overload::global(
            "add_timestamp_duration",
            vec![Type::Timestamp, Type::Duration],
            Type::Timestamp,
            add,
        ),
        two("add_int64", Type::Int),
        two("add_list", list()).costs(lists_estimate, |_, _| 1),
        two("add_string", Type::String).costs(joined_estimate, concatenation_cost),
        two("add_uint64", Type::Uint),
    ]
}

fn subtractions() -> Vec<Overload> {
    let two = |id, ty: Type, result| Overload::global(id, vec![ty.clone(), ty], result, subtract);
    vec![
        two("subtract_double", Type::Double, Type::Double),
        two("subtract_duration_duration", Type::Duration, Type::Duration),
        two("subtract_int64", Type::Int, Type::Int),
        Overload::global(
            "subtract_timestamp_duration",
            vec![Type::Timestamp, Type::Duration],
            Type::Timestamp,
            subtract,
        ),
        two("subtract_timestamp_timestamp", Type::Timestamp, Type::Duration),
        two("subtract_uint64", Type::Uint, Type::Uint),
    ]
}

#[expect(clippy::unnecessary_wraps, reason = "an EstimateFn")]
fn joined_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    let size = call.argument(0).plus(call.argument(1));
    Some(CallEstimate::sized(size.times_factor(STRING_TRAVERSAL), size))
}

#[expect(clippy::unnecessary_wraps, reason = "an EstimateFn")]
fn lists_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    Some(CallEstimate::sized(CostEstimate::ONE, call.argument(0).plus(call.argument(1))))
}

fn concatenation_cost(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(arguments.iter().map(Value::cost_size).sum(), STRING_TRAVERSAL)
}

fn int(result: Option<i64>) -> Result<Value<'static>, EvalError> {
    result.map(Value::Int).ok_or_else(|| EvalError::new("integer overflow"))
}

fn uint(result: Option<u64>) -> Result<Value<'static>, EvalError> {
    result.map(Value::Uint).ok_or_else(|| EvalError::new("unsigned integer overflow"))
}

fn span(result: Option<i64>) -> Result<Value<'static>, EvalError> {
    result.map(|nanos| Value::Duration(Duration { nanos })).ok_or_else(|| EvalError::new("integer overflow"))
}

fn add<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    match (call.argument(0)?, call.argument(1)?) {
        (Value::Int(one), Value::Int(two)) => int(one.checked_add(*two)),
        (Value::Uint(one), Value::Uint(two)) => uint(one.checked_add(*two)),
        (Value::Double(one), Value::Double(two)) => Ok(Value::Double(one + two)),
        (Value::String(one), Value::String(two)) => {
            call.take_parse(one.len().saturating_add(two.len()))?;
            Ok(Value::String(Text::from(format!("{}{}", &**one, &**two))))
        }
        (Value::Bytes(one), Value::Bytes(two)) => {
            call.take_parse(one.len().saturating_add(two.len()))?;
            Ok(Value::Bytes(one.iter().chain(&**two).copied().collect()))
        }
        (Value::Duration(one), Value::Duration(two)) => span(one.nanos.checked_add(two.nanos)),
        (Value::Timestamp(at), Value::Duration(by)) | (Value::Duration(by), Value::Timestamp(at)) => {
            at.plus(*by).map(Value::Timestamp)
        }
        (Value::List(one), Value::List(two)) => concatenate(call, one, two),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Concatenates lists. Sets add missing items; lists of maps replace items with the same keys.
fn concatenate<'v>(call: &Call<'_, 'v>, one: &List<'v>, two: &List<'v>) -> Result<Value<'v>, EvalError> {
    call.take_items(one.len().saturating_add(two.len()))?;
    let Some(of) = one.declared() else {
        let mut items = one.to_vec()?;
        items.extend(two.to_vec()?);
        return Ok(Value::list(items));
    };
    let mut values = if matches!(one.kind(), ListKind::Atomic) { Vec::new() } else { one.to_vec()? };
    // A declared list contains plain data.
    let mut items = one.plain();
    for item in two.iter() {
        let item = item?;
        let (index, plain) = (index_of_equal(call, &item, &values, one.kind())?, item.without_declaration()?);
        match (index, one.kind()) {
            (Some(index), ListKind::Map(_)) => {
                values[index] = item;
                items[index] = plain;
            }
            (Some(_), _) => {}
            (None, ListKind::Atomic) => items.push(plain),
            (None, _) => {
                values.push(item);
                items.push(plain);
            }
        }
    }
    Ok(Value::List(List::Computed { items: Arc::new(items), of: Some(of) }))
}

/// Returns the index of the equal item in a list of this kind.
fn index_of_equal(
    call: &Call<'_, '_>,
    item: &Value<'_>,
    among: &[Value<'_>],
    kind: &ListKind,
) -> Result<Option<usize>, EvalError> {
    for (index, other) in among.iter().enumerate() {
        call.take(1)?;
        let same = match kind {
            ListKind::Atomic => false,
            ListKind::Set => call.equal(other, item)?,
            ListKind::Map(keys) => call.same_key(other, item, keys)?,
        };
        if same {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn subtract<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    match (call.argument(0)?, call.argument(1)?) {
        (Value::Int(one), Value::Int(two)) => int(one.checked_sub(*two)),
        (Value::Uint(one), Value::Uint(two)) => uint(one.checked_sub(*two)),
        (Value::Double(one), Value::Double(two)) => Ok(Value::Double(one - two)),
        (Value::Duration(one), Value::Duration(two)) => span(one.nanos.checked_sub(two.nanos)),
        (Value::Timestamp(at), Value::Duration(by)) => at.minus(*by).map(Value::Timestamp),
        (Value::Timestamp(one), Value::Timestamp(two)) => one.since(*two).map(Value::Duration),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn multiply<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    match (call.argument(0)?, call.argument(1)?) {
        (Value::Int(one), Value::Int(two)) => int(one.checked_mul(*two)),
        (Value::Uint(one), Value::Uint(two)) => uint(one.checked_mul(*two)),
        (Value::Double(one), Value::Double(two)) => Ok(Value::Double(one * two)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn divide<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    match (call.argument(0)?, call.argument(1)?) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => {
            Err(EvalError::new("division by zero"))
        }
        (Value::Int(one), Value::Int(two)) => int(one.checked_div(*two)),
        (Value::Uint(one), Value::Uint(two)) => uint(one.checked_div(*two)),
        (Value::Double(one), Value::Double(two)) => Ok(Value::Double(one / two)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn modulo<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    match (call.argument(0)?, call.argument(1)?) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => {
            Err(EvalError::new("modulus by zero"))
        }
        (Value::Int(one), Value::Int(two)) => int(one.checked_rem(*two)),
        (Value::Uint(one), Value::Uint(two)) => uint(one.checked_rem(*two)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn negate<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    match call.argument(0)? {
        Value::Int(value) => int(value.checked_neg()),
        Value::Double(value) => Ok(Value::Double(-value)),
        Value::Duration(value) => span(value.nanos.checked_neg()),
        _ => Err(EvalError::no_such_overload()),
    }
}
