//! Canonical form of the typed dialect: fields in schema order, zero values according to the emit rule of each field, sorted
//! map keys, canonical times. The result is equal to a decoded upstream encoding of the same object.

use portico_machinery::Object;
use portico_machinery::object::sort_keys;
use serde_json::{Map, Number, Value};

use crate::decode::times;
use crate::model::{Emit, Field, FieldType, Type, TypeSet};
use crate::typed::Typed;

pub(crate) fn normalize_object(schema: &Typed, object: &mut Object) {
    let map = std::mem::take(object.map_mut());
    *object.map_mut() = normalize_fields(schema.types(), schema.root(), map);
}

fn normalize_fields(types: &TypeSet, ty: &Type, mut from: Map<String, Value>) -> Map<String, Value> {
    let mut to = Map::with_capacity(from.len());
    for field in &ty.fields {
        let value = from.swap_remove(&*field.name).filter(|v| !v.is_null());
        if let Some(value) = emitted_value(types, field, value) {
            to.insert(field.name.to_string(), value);
        }
    }
    to
}

/// Returns the value to print for a field, or `None` if the field is omitted.
fn emitted_value(types: &TypeSet, field: &Field, value: Option<Value>) -> Option<Value> {
    let value = value.map(|value| canonicalize(types, &field.ty, value));
    match field.emit {
        Emit::Pointer => value,
        Emit::Nullable => Some(value.unwrap_or_default()),
        Emit::OmitEmpty | Emit::OmitZero => value.filter(|value| !is_zero(types, &field.ty, value)),
        Emit::Always | Emit::Struct => Some(match value {
            // Upstream's storage does not distinguish empty from absent: both are printed as null.
            Some(value) if is_empty_collection(value_type(types, field), &value) => Value::Null,
            Some(value) => value,
            None => canonicalize(types, &field.ty, types.zero(&field.ty)),
        }),
    }
}

fn value_type<'a>(types: &'a TypeSet, field: &'a Field) -> &'a FieldType {
    types.resolve(&field.ty)
}

fn is_empty_collection(ty: &FieldType, value: &Value) -> bool {
    match (ty, value) {
        (FieldType::List(_), Value::Array(list)) => list.is_empty(),
        (FieldType::Map(_), Value::Object(map)) => map.is_empty(),
        _ => false,
    }
}

/// True if a value is the zero value of its type. A struct never is, because upstream prints structs that are not pointers.
pub(crate) fn is_zero(types: &TypeSet, ty: &FieldType, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty() && matches!(types.resolve(ty), FieldType::Map(_)),
    }
}

fn canonicalize(types: &TypeSet, ty: &FieldType, value: Value) -> Value {
    let ty = types.shape(ty, |shape| matches_shape(shape, &value)).unwrap_or(ty);
    match (types.resolve(ty), value) {
        (FieldType::Ref(id), Value::Object(map)) => {
            Value::Object(normalize_fields(types, types.get(*id), map))
        }
        (FieldType::List(of), Value::Array(list)) => {
            Value::Array(list.into_iter().map(|item| canonical_element(types, of, item)).collect())
        }
        (FieldType::Map(of), Value::Object(map)) => Value::Object(canonical_map(types, of, map)),
        (FieldType::Time, Value::String(text)) => time(times::canonical_seconds(&text).unwrap_or(text)),
        (FieldType::MicroTime, Value::String(text)) => time(times::canonical_micros(&text).unwrap_or(text)),
        (FieldType::Any, mut value) => {
            sort_keys(&mut value);
            convert_floats(&mut value, MAX_EXACT_FLOAT);
            value
        }
        (_, value) => value,
    }
}

/// Converts a time to canonical form; Go's zero time is printed as null.
fn time(text: String) -> Value {
    match text.as_str() {
        "0001-01-01T00:00:00Z" | "0001-01-01T00:00:00.000000Z" => Value::Null,
        _ => Value::String(text),
    }
}

/// Largest magnitude up to which floats represent every integer exactly (2^53).
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;
/// Largest magnitude up to which a float with a zero fraction is read back as a 64-bit integer.
const MAX_INTEGER_FLOAT: f64 = 9.2e18;

/// Converts the numbers of a custom resource as upstream's storage reads them back: those without a fraction become
/// integers. Before that, validation treats a number that was sent with a fraction as a float. Metadata is typed and skipped.
pub(crate) fn object_floats_to_integers(map: &mut Map<String, Value>) {
    let fields = map.iter_mut().filter(|(name, _)| *name != "metadata");
    fields.for_each(|(_, value)| convert_floats(value, MAX_INTEGER_FLOAT));
}

/// Converts the numbers of one value as [`object_floats_to_integers`] does.
pub(crate) fn value_floats_to_integers(value: &mut Value) {
    convert_floats(value, MAX_INTEGER_FLOAT);
}

/// Returns the integer as which a float is read back, or `None` if it stays a float.
pub(crate) fn as_integer(number: &Number) -> Option<i64> {
    integer_up_to(number, MAX_INTEGER_FLOAT)
}

#[expect(clippy::cast_possible_truncation, reason = "only whole numbers within the range")]
fn integer_up_to(number: &Number, max: f64) -> Option<i64> {
    let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0)?;
    (float.abs() <= max).then_some(float as i64)
}

/// Converts numbers without a fraction to integers, as upstream writes values of type "any JSON".
fn convert_floats(value: &mut Value, max: f64) {
    match value {
        Value::Number(number) => {
            if let Some(integer) = integer_up_to(number, max) {
                *value = Value::from(integer);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| convert_floats(value, max)),
        Value::Object(map) => map.values_mut().for_each(|value| convert_floats(value, max)),
        _ => {}
    }
}

/// True if a value has this shape, one of several shapes of its type.
fn matches_shape(shape: &FieldType, value: &Value) -> bool {
    matches!(
        (shape, value),
        (FieldType::Ref(_), Value::Object(_))
            | (FieldType::List(_), Value::Array(_))
            | (FieldType::Bool, Value::Bool(_))
    )
}

/// Canonicalizes an element of a list or map, where null means the zero value.
fn canonical_element(types: &TypeSet, of: &FieldType, value: Value) -> Value {
    canonicalize(types, of, if value.is_null() { types.zero(of) } else { value })
}

fn canonical_map(types: &TypeSet, of: &FieldType, map: Map<String, Value>) -> Map<String, Value> {
    let mut entries: Vec<(String, Value)> =
        map.into_iter().map(|(k, v)| (k, canonical_element(types, of, v))).collect();
    entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    entries.into_iter().collect()
}
