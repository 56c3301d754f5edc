//! Type of a map during a strategic merge, and errors of its content.

use portico_machinery::object::{GoValue, cut};
use serde_json::Value;

use super::directive::{Json, Result, refused_error};
use super::document::go_type;
use super::error::PatchError;
use crate::model::{Field, FieldType, Type, TypeSet};

/// Type of the map that is being merged.
#[derive(Clone, Copy)]
pub(super) enum Container<'s> {
    /// Struct with fields.
    Struct(&'s Type),
    /// Map, whose values upstream does not merge.
    Map,
    /// JSON without a known structure.
    Opaque,
}

impl<'s> Container<'s> {
    pub(super) fn of(types: &'s TypeSet, ty: &'s FieldType) -> Self {
        match types.resolve(ty) {
            FieldType::Ref(id) => Self::Struct(types.get(*id)),
            FieldType::Map(_) => Self::Map,
            FieldType::List(of) => Self::of(types, of),
            _ => Self::Opaque,
        }
    }

    /// Returns the field of a key of the original, whose value is a map or list that must be merged.
    pub(super) fn field(self, key: &str) -> Result<&'s Field> {
        let unknown = |name: &str| {
            refused_error(format!("unable to find api field in struct {name} for the json field {key:?}"))
        };
        match self {
            Self::Struct(ty) => ty.field(key).ok_or_else(|| unknown(ty.short_name())),
            Self::Map => Err(refused_error(
                "merging an object in json but data type is not struct, instead is: map".to_owned(),
            )),
            Self::Opaque => Err(unknown("RawExtension")),
        }
    }
}

/// Returns the error for a list element without its merge key.
pub(super) fn missing_merge_key(map: &Json, key: &str) -> PatchError {
    let map = cut(GoValue(&Value::Object(map.clone())).to_string());
    refused_error(format!("map: {map} does not contain declared merge key: {key}"))
}

/// Returns the error for a value that should be a list.
pub(super) fn not_a_list(found: &Value) -> PatchError {
    refused_error(format!("expected a []interface {{}}, but received a {}", go_type(found)))
}
