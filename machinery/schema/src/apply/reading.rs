//! How the values of an object are read.

use serde_json::{Map as Json, Value};

use super::misfit::TypeMismatch;
use super::printed::Pointer;

pub(super) type Side<'v> = Option<&'v Value>;

/// How struct fields are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// As typed objects print: zero values by each field's emit rule.
    Typed,
    /// As they stand there; an explicit null where there was nothing says nothing.
    Raw,
    /// As they stand there, null being a value like others: custom resources.
    Whole,
}

/// The entries of a map; null has none.
pub(super) fn entries(side: Side<'_>) -> Result<Option<&Json<String, Value>>, TypeMismatch> {
    match side {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(other) => Err(TypeMismatch::at("", &format!("expected map, got {}", Pointer(other)))),
    }
}

/// The items of a list; null has none.
pub(super) fn items(side: Side<'_>) -> Result<&[Value], TypeMismatch> {
    match side {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(other) => Err(TypeMismatch::at("", &format!("expected list, got {}", Pointer(other)))),
    }
}
