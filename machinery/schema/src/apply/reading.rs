//! Mode in which the values of an object are read.

use serde_json::{Map as Json, Value};

use super::printed::GoPointer;
use super::type_mismatch::TypeMismatch;

pub(super) type Side<'v> = Option<&'v Value>;

/// Mode in which struct fields are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadMode {
    /// Values as typed objects print them: zero values according to the emit rule of each field.
    Typed,
    /// Raw values; an explicit null equals an absent field.
    Raw,
    /// Raw values, with null as a distinct value (custom resources).
    RawWithNull,
}

/// Returns the entries of a map; null has none.
pub(super) fn entries(side: Side<'_>) -> Result<Option<&Json<String, Value>>, TypeMismatch> {
    match side {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(other) => Err(TypeMismatch::new("", &format!("expected map, got {}", GoPointer(other)))),
    }
}

/// Returns the items of a list; null has none.
pub(super) fn items(side: Side<'_>) -> Result<&[Value], TypeMismatch> {
    match side {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(other) => Err(TypeMismatch::new("", &format!("expected list, got {}", GoPointer(other)))),
    }
}
