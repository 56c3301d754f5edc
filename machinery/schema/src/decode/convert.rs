//! Conversion of values to a type like upstream's converter from maps, for the result of a strategic merge patch or of an
//! applied configuration. It accepts more than the JSON decoder: numbers that are too large lose their upper bits, 1.0 is 1.
//! The first value of a wrong type ends the conversion; fields are converted in the order of their type.

use portico_machinery::gvk::GroupVersionKind;
use portico_machinery::object::cut;
use portico_machinery::{Bounded, Object};
use serde_json::{Map, Value};

use super::go_type::GoType;
use super::json_decoder::{JsonDecoder, strict_errors};
use super::scalar::{self, TypeMismatch};
use super::{Decoded, json_type_name};
use crate::model::{FieldType, Type, TypeSet};
use crate::typed::Typed;

type Result<T> = std::result::Result<T, String>;

/// Converts an object to its type. The result lists the unknown fields, sorted.
pub(crate) fn convert(schema: &Typed, mut object: Object, expected: &GroupVersionKind) -> Result<Decoded> {
    let mut converter = Converter { types: schema.types(), unknown: strict_errors(), path: String::new() };
    let map = converter.structure(schema.root(), std::mem::take(object.map_mut()))?;
    let mut object = Object::from_map(map);
    object.set(&["kind"], &expected.kind);
    object.set(&["apiVersion"], expected.group_version().to_string());
    let mut strict = converter.unknown.into_items();
    strict.sort_unstable();
    Ok(Decoded { object, strict })
}

struct Converter<'s> {
    types: &'s TypeSet,
    unknown: Bounded<String>,
    /// Field names and list indices; map keys are omitted.
    path: String,
}

impl<'s> Converter<'s> {
    fn structure(&mut self, ty: &'s Type, mut from: Map<String, Value>) -> Result<Map<String, Value>> {
        let mut to = Map::new();
        let path = self.path.len();
        for field in &ty.fields {
            let Some(value) = from.get_mut(&*field.name).map(Value::take) else { continue };
            self.push(&field.name);
            let value = self.value(GoType::of(field), value)?;
            self.path.truncate(path);
            if let Some(value) = value {
                to.insert(field.name.to_string(), value);
            }
        }
        for key in from.keys().filter(|key| ty.field(key).is_none()) {
            self.push(key);
            let path_of_key = &self.path;
            self.unknown.push_with(|| format!("unknown field \"{}\"", cut(path_of_key.clone())));
            self.path.truncate(path);
        }
        Ok(to)
    }

    fn push(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }

    /// Converts a value. Returns `None` for null.
    fn value(&mut self, of: GoType<'s>, value: Value) -> Result<Option<Value>> {
        if value.is_null() {
            return Ok(None);
        }
        if self.types.shapes(of.ty).is_some_and(|shapes| !shapes.is_empty()) {
            return self.decode_via_json(of.ty, &value);
        }
        match (self.types.resolve(of.ty), value) {
            (FieldType::Any | FieldType::AnyObject, value) => Ok(Some(value)),
            (FieldType::Ref(id), Value::Object(map)) => {
                self.structure(self.types.get(*id), map).map(|map| Some(Value::Object(map)))
            }
            (FieldType::Ref(_), other) => Err(format!("cannot restore struct from: {}", go_kind(&other))),
            (FieldType::Map(inner), Value::Object(map)) => self.map(of.element(inner), map).map(Some),
            (FieldType::Map(_), other) => Err(format!("cannot restore map from {}", go_kind(&other))),
            (FieldType::List(inner), Value::Array(list)) => self.list(of.element(inner), list).map(Some),
            (FieldType::Bytes, Value::Array(list)) => bytes(list).map(Some),
            (FieldType::Bytes, Value::String(text)) => {
                match scalar::from_string(&FieldType::Bytes, text.into()) {
                    Ok(value) => Ok(Some(value)),
                    Err(TypeMismatch::Type(error) | TypeMismatch::Text(error)) => {
                        Err(format!("error decoding from json: {error}"))
                    }
                }
            }
            (FieldType::List(_) | FieldType::Bytes, other) => {
                Err(format!("cannot restore slice from {}", go_kind(&other)))
            }
            (
                FieldType::Time | FieldType::MicroTime | FieldType::Quantity | FieldType::IntOrString,
                value,
            ) => self.decode_via_json(of.ty, &value),
            (plain, value) => scalar(plain, value, || of.name(self.types)).map(Some),
        }
    }

    fn map(&mut self, of: GoType<'s>, from: Map<String, Value>) -> Result<Value> {
        let mut to = Map::with_capacity(from.len());
        for (key, value) in from {
            let value = self.element_value(of, value)?;
            to.insert(key, value);
        }
        Ok(Value::Object(to))
    }

    fn list(&mut self, of: GoType<'s>, from: Vec<Value>) -> Result<Value> {
        use std::fmt::Write as _;
        let mut to = Vec::with_capacity(from.len());
        let path = self.path.len();
        for value in from {
            // Writing to a string cannot fail.
            let _ = write!(self.path, "[{}]", to.len());
            let value = self.element_value(of, value)?;
            self.path.truncate(path);
            to.push(value);
        }
        Ok(Value::Array(to))
    }

    /// Converts a value inside a list or map, where null means the zero value.
    fn element_value(&mut self, of: GoType<'s>, value: Value) -> Result<Value> {
        match self.value(of, value)? {
            Some(value) => Ok(value),
            // Null in memory, and empty after storage.
            None if *self.types.resolve(of.ty) == FieldType::Bytes => Ok(Value::String(String::new())),
            None => Ok(self.types.zero(of.ty)),
        }
    }

    /// Converts a value whose upstream type has its own JSON decoder. Unknown fields inside are not reported.
    fn decode_via_json(&self, ty: &'s FieldType, value: &Value) -> Result<Option<Value>> {
        let text = value.to_string();
        let mut walk = JsonDecoder::new(&text, self.types);
        let read = walk.single_value(ty).map_err(|error| error.to_string())?;
        walk.error.map_or(Ok(read), Err)
    }
}

/// Converts a plain value. The name of its type is only formatted for an error.
fn scalar(ty: &FieldType, value: Value, name: impl Fn() -> String) -> Result<Value> {
    let refuse = |from: &str| Err(format!("cannot convert {from} to {}", name()));
    match (ty, value) {
        (FieldType::String, value @ Value::String(_)) | (FieldType::Bool, value @ Value::Bool(_)) => {
            Ok(value)
        }
        (FieldType::String, Value::Number(number)) if !number.is_f64() => refuse("int64"),
        (FieldType::Number, value @ Value::Number(_)) => Ok(value),
        (FieldType::Int32 | FieldType::Int64, Value::Number(number)) => match as_integer(&number) {
            Some(integer) if *ty == FieldType::Int32 => Ok(truncate_to_i32(integer).into()),
            Some(integer) => Ok(integer.into()),
            None => refuse("float64"),
        },
        (FieldType::Int32, _) => Err("unrecognized type: int32".to_owned()),
        (FieldType::Int64, _) => Err("unrecognized type: int64".to_owned()),
        (FieldType::Bool, _) => Err("unrecognized type: bool".to_owned()),
        (FieldType::Number, _) => Err("unrecognized type: float64".to_owned()),
        _ => Err("unrecognized type: string".to_owned()),
    }
}

/// Converts a number to an integer as Go does. Returns `None` if the number has a fraction.
fn as_integer(number: &serde_json::Number) -> Option<i64> {
    let float = match number.as_i64() {
        Some(integer) => return Some(integer),
        None => number.as_f64()?,
    };
    // Values out of range become the minimum.
    #[expect(clippy::cast_possible_truncation, reason = "only within the range")]
    let converted = if (-9.2e18..9.2e18).contains(&float) { float as i64 } else { i64::MIN };
    (float.trunc() == float).then_some(converted)
}

#[expect(clippy::cast_possible_truncation, reason = "as Go converts it")]
fn truncate_to_i32(integer: i64) -> i32 {
    integer as i32
}

/// Converts a list of numbers to bytes.
fn bytes(list: Vec<Value>) -> Result<Value> {
    let byte = |value: Value| match value {
        Value::Null => Ok(0),
        Value::Number(number) => match as_integer(&number) {
            Some(integer) => Ok(integer.to_le_bytes()[0]),
            None => Err("cannot convert float64 to uint8".to_owned()),
        },
        _ => Err("unrecognized type: uint8".to_owned()),
    };
    let bytes: Result<Vec<u8>> = list.into_iter().map(byte).collect();
    Ok(Value::String(scalar::base64(&bytes?)))
}

/// Returns the Go kind of an untyped value.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
        other => json_type_name(other),
    }
}
