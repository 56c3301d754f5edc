//! Encoding of an object: every field that is not a pointer, including zero values, by number. Values of a wrong
//! type are omitted.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_gostd::time::{Layout, Time};
use portico_machinery::protobuf::Writer;
use serde_json::{Map, Value};

use crate::model::{Field, FieldType, ProtoField, ProtoFieldContent, Type, TypeSet};

/// Seconds of the year 1, the zero value of upstream's times, which is encoded as an empty message.
pub(super) const ZERO_TIME: i64 = -62_135_596_800;

/// Encodes the fields of an object as one message.
pub(crate) fn encode_message(types: &TypeSet, ty: &Type, object: &Map<String, Value>) -> Vec<u8> {
    let mut writer = Writer::default();
    Encoder { types }.fields(&mut writer, ty, &ty.layout, object);
    writer.into_bytes()
}

struct Encoder<'s> {
    types: &'s TypeSet,
}

impl Encoder<'_> {
    fn fields(&self, w: &mut Writer, ty: &Type, slots: &[ProtoField], object: &Map<String, Value>) {
        for slot in slots {
            match &slot.content {
                ProtoFieldContent::Embedded(inner) => {
                    w.message(slot.number, |w| self.fields(w, ty, inner, object))
                }
                ProtoFieldContent::Field(at) => {
                    let field = &ty.fields[usize::from(*at)];
                    self.field(w, field, object.get(&*field.name));
                }
            }
        }
    }

    fn field(&self, w: &mut Writer, field: &Field, value: Option<&Value>) {
        match value.filter(|v| !v.is_null()) {
            Some(value) => self.value(w, field.number, &field.ty, value),
            None if field.emit.is_pointer() => {}
            None => self.zero(w, field.number, &field.ty),
        }
    }

    fn value(&self, w: &mut Writer, number: u32, ty: &FieldType, value: &Value) {
        if let Some(shapes) = self.types.shapes(ty) {
            return w.message(number, |w| self.encode_by_shape(w, shapes, value));
        }
        match (self.types.resolve(ty), value) {
            (FieldType::List(of), Value::Array(list)) => {
                for item in list {
                    self.element(w, number, of, item);
                }
            }
            (FieldType::Map(of), Value::Object(map)) => self.map(w, number, of, map),
            (FieldType::Ref(id), Value::Object(map)) => {
                let ty = self.types.get(*id);
                w.message(number, |w| self.fields(w, ty, &ty.layout, map));
            }
            (FieldType::Any | FieldType::AnyObject, value) => {
                // Any JSON value can be encoded.
                let raw = serde_json::to_vec(value).unwrap_or_default();
                w.message(number, |w| w.bytes(1, &raw));
            }
            (plain, value) => scalar(w, number, plain, value),
        }
    }

    /// Encodes a value inside a list or map: null means the zero value, a list is a separate message.
    fn element(&self, w: &mut Writer, number: u32, of: &FieldType, value: &Value) {
        match (self.types.resolve(of), value) {
            (_, Value::Null) => self.zero(w, number, of),
            (FieldType::List(_), value) => w.message(number, |w| self.value(w, 1, of, value)),
            (_, value) => self.value(w, number, of, value),
        }
    }

    fn map(&self, w: &mut Writer, number: u32, of: &FieldType, map: &Map<String, Value>) {
        let mut entries: Vec<(&String, &Value)> = map.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        for (key, value) in entries {
            w.message(number, |w| {
                w.string(1, key);
                self.element(w, 2, of, value);
            });
        }
    }

    /// Encodes the field of the shape that matches; the Boolean field is `true` if the value has another shape.
    fn encode_by_shape(&self, w: &mut Writer, shapes: &[(FieldType, u32)], value: &Value) {
        for (shape, number) in shapes {
            match (shape, value) {
                (FieldType::Bool, value) => w.bool(*number, value.as_bool().unwrap_or(true)),
                (FieldType::List(_), Value::Array(_)) | (FieldType::Ref(_), Value::Object(_)) => {
                    self.value(w, *number, shape, value);
                }
                _ => {}
            }
        }
    }

    /// Encodes the zero value of a field that is not a pointer and not set.
    fn zero(&self, w: &mut Writer, number: u32, ty: &FieldType) {
        match self.types.resolve(ty) {
            FieldType::String => w.string(number, ""),
            FieldType::Int32 | FieldType::Int64 => w.int(number, 0),
            FieldType::Bool => w.bool(number, false),
            FieldType::Number => w.double(number, 0.0),
            FieldType::Quantity => quantity(w, number, "0"),
            FieldType::IntOrString => int_or_string(w, number, 0, 0, ""),
            FieldType::Time | FieldType::MicroTime | FieldType::Any | FieldType::AnyObject => {
                w.message(number, |_| {});
            }
            FieldType::Ref(id) => {
                let ty = self.types.get(*id);
                w.message(number, |w| self.fields(w, ty, &ty.layout, &Map::new()));
            }
            FieldType::Bytes | FieldType::List(_) | FieldType::Map(_) => {}
        }
    }
}

fn scalar(w: &mut Writer, number: u32, ty: &FieldType, value: &Value) {
    match (ty, value) {
        (FieldType::String, Value::String(text)) => w.string(number, text),
        (FieldType::Int32 | FieldType::Int64, Value::Number(n)) => w.int(number, n.as_i64().unwrap_or(0)),
        (FieldType::Number, Value::Number(n)) => w.double(number, n.as_f64().unwrap_or(0.0)),
        (FieldType::Bool, Value::Bool(truth)) => w.bool(number, *truth),
        (FieldType::Bytes, Value::String(text)) => {
            // The decoder has already converted this to canonical base64.
            w.bytes(number, &STANDARD.decode(text).unwrap_or_default());
        }
        (FieldType::Time, Value::String(text)) => timestamp(w, number, Layout::Rfc3339, text),
        (FieldType::MicroTime, Value::String(text)) => timestamp(w, number, Layout::Micro, text),
        (FieldType::Quantity, Value::String(text)) => quantity(w, number, text),
        (FieldType::IntOrString, Value::Number(n)) => {
            int_or_string(w, number, 0, n.as_i64().unwrap_or(0), "");
        }
        (FieldType::IntOrString, Value::String(text)) => int_or_string(w, number, 1, 0, text),
        _ => {}
    }
}

/// Encodes a time. The decoder has already made the text canonical: unreadable text is the zero time.
fn timestamp(w: &mut Writer, number: u32, layout: Layout, text: &str) {
    let time = Time::parse(layout, text).ok().filter(|time| time.seconds != ZERO_TIME);
    w.message(number, |w| {
        if let Some(time) = time {
            w.int(1, time.seconds);
            w.int(2, if layout == Layout::Micro { time.nanos.into() } else { 0 });
        }
    });
}

fn quantity(w: &mut Writer, number: u32, text: &str) {
    w.message(number, |w| w.string(1, text));
}

fn int_or_string(w: &mut Writer, number: u32, kind: i64, int: i64, text: &str) {
    w.message(number, |w| {
        w.int(1, kind);
        w.int(2, int);
        w.string(3, text);
    });
}
