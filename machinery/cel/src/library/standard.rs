//! The language's own functions: operators, comparisons, conversions, text, time, containers.

mod arithmetic;
mod compare;
mod containers;
mod convert;
mod logic;
#[cfg(feature = "regex")]
mod matches;
mod text;
mod time;
mod zone;

use super::Library;
use crate::error::EvalError;
use crate::function::Call;
use crate::size::{STRING_TRAVERSAL, scale};
use crate::types::Type;
use crate::value::Value;

/// All of them.
#[must_use]
pub fn library() -> Library {
    let groups = vec![
        logic::functions(),
        arithmetic::functions(),
        compare::functions(),
        containers::functions(),
        convert::functions(),
        text::functions(),
        time::functions(),
        #[cfg(feature = "regex")]
        vec![matches::function()],
    ];
    Library {
        name: "standard",
        functions: groups.into_iter().flatten().collect(),
        types: types(),
        macros: Vec::new(),
    }
}

/// Types that expressions may name.
fn types() -> Vec<(&'static str, Type)> {
    vec![
        ("bool", Type::Bool),
        ("bytes", Type::Bytes),
        ("double", Type::Double),
        ("google.protobuf.Duration", Type::Duration),
        ("google.protobuf.Timestamp", Type::Timestamp),
        ("int", Type::Int),
        ("list", Type::list(Type::Dyn)),
        ("map", Type::map(Type::Dyn, Type::Dyn)),
        ("null_type", Type::Null),
        ("string", Type::String),
        ("type", Type::Type(None)),
        ("uint", Type::Uint),
    ]
}

/// Stands where the evaluator knows better: logic, equality and indices are no calls.
fn never<'v>(_: &Call<'_, 'v>) -> Result<Value<'v>, EvalError> {
    Err(EvalError::no_such_overload())
}

/// The first argument is read once.
fn read(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(arguments.first().map_or(1, Value::cost_size), STRING_TRAVERSAL)
}
