//! `<`, `<=`, `>`, `>=`.

use std::cmp::Ordering;

use super::logic::{shorter, shorter_estimate};
use crate::ast::operator;
use crate::error::EvalError;
use crate::function::{Call, Function, Implementation, Overload};
use crate::types::Type;
use crate::value::{Value, compare};

/// Signatures in the order in which they are tried.
fn signatures() -> [(Type, Type); 14] {
    [
        (Type::Bool, Type::Bool),
        (Type::Int, Type::Int),
        (Type::Int, Type::Double),
        (Type::Int, Type::Uint),
        (Type::Uint, Type::Uint),
        (Type::Uint, Type::Double),
        (Type::Uint, Type::Int),
        (Type::Double, Type::Double),
        (Type::Double, Type::Int),
        (Type::Double, Type::Uint),
        (Type::String, Type::String),
        (Type::Bytes, Type::Bytes),
        (Type::Timestamp, Type::Timestamp),
        (Type::Duration, Type::Duration),
    ]
}

/// cel-go's ids of the signatures, with their prefix.
macro_rules! ids {
    ($prefix:literal) => {
        [
            concat!($prefix, "_bool"),
            concat!($prefix, "_int64"),
            concat!($prefix, "_int64_double"),
            concat!($prefix, "_int64_uint64"),
            concat!($prefix, "_uint64"),
            concat!($prefix, "_uint64_double"),
            concat!($prefix, "_uint64_int64"),
            concat!($prefix, "_double"),
            concat!($prefix, "_double_int64"),
            concat!($prefix, "_double_uint64"),
            concat!($prefix, "_string"),
            concat!($prefix, "_bytes"),
            concat!($prefix, "_timestamp"),
            concat!($prefix, "_duration"),
        ]
    };
}

pub(super) fn functions() -> Vec<Function> {
    vec![
        comparison(operator::LESS, ids!("less"), less),
        comparison(operator::LESS_EQUALS, ids!("less_equals"), less_equals),
        comparison(operator::GREATER, ids!("greater"), greater),
        comparison(operator::GREATER_EQUALS, ids!("greater_equals"), greater_equals),
    ]
}

fn comparison(name: &'static str, ids: [&'static str; 14], run: Implementation) -> Function {
    let overload = |(id, (one, two)): (&'static str, (Type, Type))| {
        let read = matches!(one, Type::String | Type::Bytes);
        let overload = Overload::global(id, vec![one, two], Type::Bool, run);
        if read { overload.costs(shorter_estimate, shorter) } else { overload }
    };
    Function::new(name, ids.into_iter().zip(signatures()).map(overload).collect())
}

fn order(call: &Call<'_, '_>) -> Result<Option<Ordering>, EvalError> {
    let (one, two) = (call.argument(0)?, call.argument(1)?);
    match compare(one, two) {
        Some(order) => Ok(Some(order)),
        None if matches!((one, two), (Value::Double(_), _) | (_, Value::Double(_))) => {
            Err(EvalError::new("NaN values cannot be ordered"))
        }
        None => Err(EvalError::no_such_overload()),
    }
}

fn less<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(order(call)?.is_some_and(Ordering::is_lt)))
}

fn less_equals<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(order(call)?.is_some_and(Ordering::is_le)))
}

fn greater<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(order(call)?.is_some_and(Ordering::is_gt)))
}

fn greater_equals<'v>(call: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Ok(Value::Bool(order(call)?.is_some_and(Ordering::is_ge)))
}
