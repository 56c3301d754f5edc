//! `in`, `size`, and the declarations of indices.

use super::logic::reject_call;
use crate::ast::operator;
use crate::error::EvalError;
use crate::function::{Call, CallEstimate, CallSizes, Function, Overload};
use crate::types::Type;
use crate::value::Value;

pub(super) fn functions() -> Vec<Function> {
    let (any, other) = (|| Type::param("A"), || Type::param("B"));
    let (list, map) = (|| Type::list(any()), || Type::map(any(), other()));
    vec![
        Function::new(
            operator::INDEX,
            vec![
                Overload::global("index_list", vec![list(), Type::Int], any(), reject_call),
                Overload::global("index_map", vec![map(), any()], other(), reject_call),
            ],
        ),
        Function::new(
            operator::IN,
            vec![
                Overload::global("in_list", vec![any(), list()], Type::Bool, contains)
                    .costs(items_estimate, items),
                Overload::global("in_map", vec![any(), map()], Type::Bool, contains),
            ],
        ),
        Function::new(
            "size",
            vec![
                Overload::global("size_bytes", vec![Type::Bytes], Type::Int, size),
                Overload::member("bytes_size", vec![Type::Bytes], Type::Int, size),
                Overload::global("size_list", vec![list()], Type::Int, size),
                Overload::member("list_size", vec![list()], Type::Int, size),
                Overload::global("size_map", vec![map()], Type::Int, size),
                Overload::member("map_size", vec![map()], Type::Int, size),
                Overload::global("size_string", vec![Type::String], Type::Int, size),
                Overload::member("string_size", vec![Type::String], Type::Int, size),
            ],
        ),
    ]
}

#[expect(clippy::unnecessary_wraps, reason = "an EstimateFn")]
fn items_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    Some(CallEstimate::cost(call.argument(1).times_factor(1.0)))
}

fn items(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    arguments.get(1).map_or(1, Value::cost_size)
}

/// True if a list has an equal item, or a map the key.
fn contains<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let needle = call.argument(0)?;
    match call.argument(1)? {
        Value::List(list) => {
            for item in list.iter() {
                if call.equal(&item?, needle)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        Value::Map(map) => {
            call.take_key(needle)?;
            Ok(Value::Bool(map.get(needle)?.is_some()))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn size<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    match call.argument(0)? {
        value @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_)) => {
            Ok(Value::Int(i64::try_from(value.cost_size()).unwrap_or(i64::MAX)))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}
