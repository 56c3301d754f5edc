//! Value of a node: the fields of a whole object, which is not a JSON value, or a value.

use serde_json::{Map, Value};

#[derive(Clone, Copy, Debug)]
pub(super) enum ObjectOrValue<'a> {
    Fields(&'a Map<String, Value>),
    Value(&'a Value),
}

impl<'a> ObjectOrValue<'a> {
    pub(super) fn fields(self) -> Option<&'a Map<String, Value>> {
        match self {
            Self::Fields(fields) => Some(fields),
            Self::Value(value) => value.as_object(),
        }
    }

    pub(super) fn list(self) -> Option<&'a [Value]> {
        self.value().and_then(Value::as_array).map(Vec::as_slice)
    }

    /// Returns the value, or `None` for a whole object.
    pub(super) fn value(self) -> Option<&'a Value> {
        match self {
            Self::Fields(_) => None,
            Self::Value(value) => Some(value),
        }
    }

    pub(super) fn is_null(self) -> bool {
        self.value().is_some_and(Value::is_null)
    }
}
