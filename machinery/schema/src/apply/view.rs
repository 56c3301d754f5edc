//! Values of upstream's typed objects as printed: zero values are dropped or added according to the emit rule.
//!
//! Comparing through this view needs no normalized copy of a new object, and distinguishes an empty list from an absent one,
//! which the normal form does not.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::shape::{Map as MapShape, Shape, TypeRef};
use crate::decode::times;
use crate::fields::compare_values;
use crate::model::{Emit, Field, FieldType, TypeSet};
use crate::normalize::is_zero;

static ZEROS: LazyLock<[Value; 5]> = LazyLock::new(|| {
    [Value::from(""), Value::from(0), Value::from("0"), Value::Bool(false), Value::Object(Map::new())]
});

/// Returns the value that is printed for a field, or `None` if it is omitted.
pub(super) fn emitted_value<'v>(
    types: &TypeSet,
    field: &Field,
    value: Option<&'v Value>,
) -> Option<&'v Value> {
    let value = value.filter(|v| !v.is_null());
    match field.emit {
        Emit::Pointer => value,
        Emit::Nullable => Some(value.unwrap_or(&Value::Null)),
        Emit::OmitEmpty | Emit::OmitZero => value.filter(|v| !is_zero(types, &field.ty, v)),
        Emit::Always | Emit::Struct => Some(value.unwrap_or_else(|| zero(types, &field.ty))),
    }
}

/// Returns [`TypeSet::zero`] without an allocation.
fn zero(types: &TypeSet, ty: &FieldType) -> &'static Value {
    let index = match types.resolve(ty) {
        FieldType::String => 0,
        FieldType::Int32 | FieldType::Int64 | FieldType::Number | FieldType::IntOrString => 1,
        FieldType::Quantity => 2,
        FieldType::Bool => 3,
        FieldType::Ref(_) => 4,
        _ => return &Value::Null,
    };
    &ZEROS[index]
}

/// True if two values of a type are printed the same.
pub(super) fn prints_same(types: &TypeSet, ty: TypeRef<'_>, a: &Value, b: &Value) -> bool {
    if a == b {
        return true;
    }
    match (ty.shape(types), a, b) {
        (Shape::Map(map), Value::Object(a), Value::Object(b)) => prints_same_maps(types, &map, a, b),
        (Shape::List(list), Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| prints_same(types, list.element_type, a, b))
        }
        (Shape::Scalar(FieldType::Time), Value::String(a), Value::String(b)) => {
            times::canonical_seconds(a).is_ok_and(|a| times::canonical_seconds(b).is_ok_and(|b| a == b))
        }
        (Shape::Scalar(FieldType::MicroTime), Value::String(a), Value::String(b)) => {
            times::canonical_micros(a).is_ok_and(|a| times::canonical_micros(b).is_ok_and(|b| a == b))
        }
        (Shape::Scalar(_), a, b) => compare_values(a, b).is_eq(),
        _ => false,
    }
}

fn prints_same_maps(
    types: &TypeSet,
    shape: &MapShape<'_>,
    a: &Map<String, Value>,
    b: &Map<String, Value>,
) -> bool {
    let declared = shape.struct_type().map_or(&[][..], |ty| &ty.fields);
    let fields = declared.iter().all(|field| {
        let sides = (
            emitted_value(types, field, a.get(&*field.name)),
            emitted_value(types, field, b.get(&*field.name)),
        );
        match sides {
            (Some(a), Some(b)) => prints_same(types, TypeRef::Field(field), a, b),
            (None, None) => true,
            _ => false,
        }
    });
    let is_other = |key: &str| shape.struct_type().is_none_or(|ty| ty.field(key).is_none());
    let count_others = |map: &Map<String, Value>| map.keys().filter(|key| is_other(key)).count();
    fields
        && count_others(a) == count_others(b)
        && a.iter().filter(|(key, _)| is_other(key)).all(|(k, a)| {
            let of = shape.entry(k).0.unwrap_or(TypeRef::Deduced);
            b.get(k).is_some_and(|b| prints_same(types, of, a, b))
        })
}
