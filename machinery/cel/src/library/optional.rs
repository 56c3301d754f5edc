//! Optional values: `optional.of`, `hasValue`, `value`, `first`, `last`, `unwrapOpt`.
//!
//! `or` and `orValue` evaluate their argument only if it is needed. The evaluator implements them itself, together with the
//! operators and macros of optional values.

use super::declaration::Library;
use super::strings;
use crate::ast::operator;
use crate::error::EvalError;
use crate::function::{Call, Function, Overload};
use crate::types::{OPTIONAL, Type};
use crate::value::{Timestamp, Value};

/// Timestamp that is the zero value.
const ZERO_TIMESTAMP: &str = "0001-01-01T00:00:00Z";

pub(super) fn library() -> Library {
    Library::new("cel.lib.optional", functions()).with_types(types())
}

fn types() -> Vec<(&'static str, Type)> {
    vec![(OPTIONAL, Type::Opaque(OPTIONAL.into(), [].into()))]
}

fn functions() -> Vec<Function> {
    let value = || Type::param("V");
    let optional = || Type::optional(value());
    let list = || Type::list(value());
    let optionals = || Type::list(optional());
    let one = |name, overload| Function::new(name, vec![overload]);
    [
        indices(),
        vec![
            one(
                "or",
                Overload::member(
                    "optional_or_optional",
                    vec![optional(), optional()],
                    optional(),
                    reject_call,
                ),
            ),
            one(
                "orValue",
                Overload::member("optional_orValue_value", vec![optional(), value()], value(), reject_call),
            ),
            one("optional.of", Overload::global("optional_of", vec![value()], optional(), of)),
            one(
                "optional.ofNonZeroValue",
                Overload::global("optional_ofNonZeroValue", vec![value()], optional(), of_non_zero),
            ),
            one("optional.none", Overload::global("optional_none", Vec::new(), optional(), none)),
            one("value", Overload::member("optional_value", vec![optional()], value(), value_of)),
            one("hasValue", Overload::member("optional_hasValue", vec![optional()], Type::Bool, has_value)),
            one("last", Overload::member("list_last", vec![list()], optional(), last)),
            one("first", Overload::member("list_first", vec![list()], optional(), first)),
            one("optional.unwrap", Overload::global("optional_unwrap", vec![optionals()], list(), unwrap)),
            one("unwrapOpt", Overload::member("optional_unwrapOpt", vec![optionals()], list(), unwrap)),
        ],
    ]
    .concat()
}

/// Declares the index operators of optional lists and maps, and those that return optional items.
fn indices() -> Vec<Function> {
    let (key, value) = (|| Type::param("K"), || Type::param("V"));
    let list = || Type::list(value());
    let map = || Type::map(key(), value());
    let index =
        |id, of: Type, by: Type| Overload::global(id, vec![of, by], Type::optional(value()), reject_call);
    vec![
        Function::new(
            operator::OPTIONAL_INDEX,
            vec![
                index("list_optindex_optional_int", list(), Type::Int),
                index("optional_list_optindex_optional_int", Type::optional(list()), Type::Int),
                index("map_optindex_optional_value", map(), key()),
                index("optional_map_optindex_optional_value", Type::optional(map()), key()),
            ],
        ),
        Function::new(
            operator::INDEX,
            vec![
                index("optional_list_index_int", Type::optional(list()), Type::Int),
                index("optional_map_index_value", Type::optional(map()), key()),
            ],
        ),
    ]
}

/// Implementation of operators that the evaluator handles itself.
fn reject_call<'v>(_: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Err(EvalError::no_such_overload())
}

fn of<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::some(call.argument(0)?.clone()))
}

fn none<'v>(_: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::NONE)
}

/// True for zero values: null, false, 0, and empty values. Values of libraries are never zero.
fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Int(value) => *value == 0,
        Value::Uint(value) => *value == 0,
        Value::Double(value) => *value == 0.0,
        Value::String(value) => value.is_empty(),
        Value::Bytes(value) => value.is_empty(),
        Value::List(value) => value.is_empty(),
        Value::Map(value) => value.is_empty(),
        Value::Duration(value) => value.nanos == 0,
        Value::Timestamp(value) => Timestamp::parse(ZERO_TIMESTAMP).as_ref() == Some(value),
        _ => false,
    }
}

fn of_non_zero<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let value = call.argument(0)?;
    Ok(if is_zero(value) { Value::NONE } else { Value::some(value.clone()) })
}

fn value_of<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    match call.argument(0)? {
        Value::Optional(Some(value)) => Ok((**value).clone()),
        Value::Optional(None) => Err(EvalError::new("optional.none() dereference")),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn has_value<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    match call.argument(0)? {
        Value::Optional(value) => Ok(Value::Bool(value.is_some())),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn item<'v>(call: &Call<'_, 'v>, index: impl Fn(usize) -> usize) -> Result<Value<'v>, EvalError> {
    let list = call.list(0)?;
    list.get(index(list.len())).map_or(Ok(Value::NONE), |item| item.map(Value::some))
}

fn first<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    item(call, |_| 0)
}

fn last<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    item(call, |length| length.saturating_sub(1))
}

fn unwrap<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    let list = call.list(0)?;
    call.take_items(list.len())?;
    let mut values = Vec::new();
    for item in list.iter() {
        match item? {
            Value::Optional(Some(value)) => values.push((*value).clone()),
            Value::Optional(None) => {}
            other => {
                return Err(EvalError::new(format!("value {} is not optional", strings::value_text(&other))));
            }
        }
    }
    Ok(Value::list(values))
}
