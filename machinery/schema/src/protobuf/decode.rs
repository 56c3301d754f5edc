//! Decoding of a message into the object that JSON would contain. Unknown fields are skipped; depth and number of
//! values are limited as for JSON.

use std::fmt::Display;

use portico_gostd::time::Time;
use portico_machinery::Object;
use portico_machinery::object::MAX_DEPTH;
use portico_machinery::protobuf::{EnvelopeError, Reader, WireError, WireValue, decode_envelope};
use serde_json::{Map, Value};

use super::encode::ZERO_TIME;
use crate::decode::{self, MAX_VALUES, TooManyValues};
use crate::model::{Emit, Field, FieldType, ProtoField, ProtoFieldContent, Type, TypeSet};

/// Reason why a message does not match its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TypeMismatch {
    /// Malformed message, or a field of a wrong wire type.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Value that is not valid for its type.
    #[error("{0}")]
    Value(String),
    /// More nesting than the limit.
    #[error("exceeded max depth")]
    Depth,
    /// More values than the limit.
    #[error(transparent)]
    Values(#[from] TooManyValues),
}

type Result<T> = std::result::Result<T, TypeMismatch>;

/// Decodes the object in an enveloped document, with kind and `apiVersion` of the envelope. If the content does not match
/// the type, also returns the reason.
pub(crate) fn decode_document(
    types: &TypeSet,
    ty: &Type,
    body: &[u8],
) -> std::result::Result<(Object, Option<TypeMismatch>), EnvelopeError> {
    let envelope = decode_envelope(body)?;
    let mut map = Map::new();
    for (name, text) in [("kind", &envelope.kind), ("apiVersion", &envelope.api_version)] {
        if !text.is_empty() {
            map.insert(name.to_owned(), Value::String(text.clone().into_owned()));
        }
    }
    let mut decoder = Decoder { types, remaining_values: MAX_VALUES, depth: 0 };
    let type_mismatch = decoder.fields(ty, &ty.layout, envelope.raw, &mut map).err();
    Ok((Object::from_map(map), type_mismatch))
}

/// Returns the name of a field in errors: `metadata` is an embedded Go struct, named after its type.
fn go_name(name: &str) -> &str {
    if name == "metadata" { "objectMeta" } else { name }
}

struct Decoder<'s> {
    types: &'s TypeSet,
    /// Number of fields, elements and entries that may still be read.
    remaining_values: usize,
    /// Current nesting depth in terms of JSON.
    depth: usize,
}

impl<'s> Decoder<'s> {
    fn fields(
        &mut self,
        ty: &'s Type,
        slots: &'s [ProtoField],
        bytes: &[u8],
        map: &mut Map<String, Value>,
    ) -> Result<()> {
        self.enter()?;
        let mut reader = Reader::with_name(ty.short_name(), bytes);
        let slot = |number| slots.binary_search_by_key(&number, |slot: &ProtoField| slot.number).ok();
        let name = |number| match &slots[slot(number)?].content {
            ProtoFieldContent::Embedded(_) => Some("embedded message"),
            ProtoFieldContent::Field(at) => Some(go_name(&ty.fields[usize::from(*at)].name)),
        };
        while let Some((number, scalar)) = reader.field_named(name)? {
            let Ok(index) = slots.binary_search_by_key(&number, |slot| slot.number) else { continue };
            match &slots[index].content {
                ProtoFieldContent::Embedded(inner) => {
                    self.fields(ty, inner, scalar.bytes("embedded message")?, map)?
                }
                ProtoFieldContent::Field(at) => self.field(&ty.fields[usize::from(*at)], scalar, map)?,
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Enters one level. The caller decrements `depth` when it returns.
    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(TypeMismatch::Depth) } else { Ok(()) }
    }

    /// Adds one occurrence of a field: the last scalar wins, messages and lists are merged.
    fn field(&mut self, field: &'s Field, scalar: WireValue<'_>, map: &mut Map<String, Value>) -> Result<()> {
        self.count()?;
        let name = &*field.name;
        match self.types.resolve(&field.ty) {
            FieldType::List(of) => {
                let list = map.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                let Value::Array(list) = list else { return Ok(()) };
                self.enter()?;
                self.items(of, name, scalar, list)?;
                self.depth -= 1;
                return Ok(());
            }
            FieldType::Map(of) => {
                let entries = map.entry(name).or_insert_with(|| Value::Object(Map::new()));
                let Value::Object(entries) = entries else { return Ok(()) };
                self.enter()?;
                self.entry(of, scalar.bytes(name)?, entries)?;
                self.depth -= 1;
                return Ok(());
            }
            FieldType::Ref(id) => return self.decode_struct(*id, field, scalar.bytes(go_name(name))?, map),
            _ => {}
        }
        let value = self.value(&field.ty, name, scalar)?;
        if value.is_null() || !field.emit.is_pointer() && is_zero(&field.ty, &value) {
            map.shift_remove(name);
        } else {
            map.insert(name.to_owned(), value);
        }
        Ok(())
    }

    /// Decodes a struct; a second occurrence is merged into the first. An empty struct that is always printed is omitted.
    fn decode_struct(
        &mut self,
        id: crate::TypeId,
        field: &'s Field,
        bytes: &[u8],
        map: &mut Map<String, Value>,
    ) -> Result<()> {
        let ty = self.types.get(id);
        let mut inner = match map.get_mut(&*field.name).map(Value::take) {
            Some(Value::Object(inner)) => inner,
            _ => Map::new(),
        };
        self.fields(ty, &ty.layout, bytes, &mut inner)?;
        if inner.is_empty() && field.emit == Emit::Struct {
            map.shift_remove(&*field.name);
        } else {
            map.insert(field.name.to_string(), Value::Object(inner));
        }
        Ok(())
    }

    /// Decodes one element of a list, or packed numbers.
    fn items(
        &mut self,
        of: &'s FieldType,
        name: &str,
        scalar: WireValue<'_>,
        list: &mut Vec<Value>,
    ) -> Result<()> {
        let number = matches!(self.types.resolve(of), FieldType::Int32 | FieldType::Int64 | FieldType::Bool);
        if let (true, WireValue::Bytes(packed)) = (number, scalar) {
            let mut packed = Reader::new(packed);
            while let Some(number) = packed.packed()? {
                self.count()?;
                list.push(self.value(of, name, WireValue::Varint(number))?);
            }
        } else {
            list.push(self.element(of, name, scalar)?);
        }
        Ok(())
    }

    fn entry(&mut self, of: &'s FieldType, bytes: &[u8], map: &mut Map<String, Value>) -> Result<()> {
        let mut reader = Reader::new(bytes);
        let (mut key, mut value) = (String::new(), None);
        while let Some((number, scalar)) = reader.field()? {
            match number {
                1 => key = lossy_string(scalar.bytes("key")?),
                2 => value = Some(self.element(of, "value", scalar)?),
                _ => {}
            }
        }
        let value = match (value, self.types.resolve(of)) {
            (Some(value), _) => value,
            (None, FieldType::List(_)) => Value::Array(Vec::new()),
            (None, FieldType::Bytes) => Value::String(String::new()),
            (None, _) => self.types.zero(of),
        };
        map.insert(key, value);
        Ok(())
    }

    /// Decodes a value inside a list or map. A list there is a separate message.
    fn element(&mut self, of: &'s FieldType, name: &str, scalar: WireValue<'_>) -> Result<Value> {
        match self.types.resolve(of) {
            FieldType::List(inner) => {
                let mut list = Vec::new();
                let mut reader = Reader::new(scalar.bytes(name)?);
                while let Some((number, scalar)) = reader.field()? {
                    if number == 1 {
                        self.count()?;
                        self.items(inner, name, scalar, &mut list)?;
                    }
                }
                Ok(Value::Array(list))
            }
            FieldType::Ref(id) => {
                let ty = self.types.get(*id);
                let mut map = Map::new();
                self.fields(ty, &ty.layout, scalar.bytes(name)?, &mut map)?;
                Ok(Value::Object(map))
            }
            _ => match self.value(of, name, scalar)? {
                Value::Null => Ok(self.types.zero(of)),
                value => Ok(value),
            },
        }
    }

    fn count(&mut self) -> Result<()> {
        self.remaining_values = self.remaining_values.checked_sub(1).ok_or(TooManyValues)?;
        Ok(())
    }

    /// Decodes a value that is not a list, map or struct. Returns null for values that JSON omits.
    fn value(&mut self, ty: &'s FieldType, name: &str, scalar: WireValue<'_>) -> Result<Value> {
        if let Some(shapes) = self.types.shapes(ty) {
            return self.value_of_shapes(shapes, scalar.bytes(name)?);
        }
        match self.types.resolve(ty) {
            FieldType::String => Ok(Value::String(lossy_string(scalar.bytes(name)?))),
            // Upstream truncates larger values to the low 32 bits.
            FieldType::Int32 => Ok(Value::from(scalar.varint(name)? as i32)),
            FieldType::Int64 => Ok(Value::from(scalar.varint(name)?.cast_signed())),
            FieldType::Bool => Ok(Value::Bool(scalar.varint(name)? != 0)),
            FieldType::Number => match scalar {
                WireValue::Fixed64(bits) => Ok(json_number(f64::from_bits(bits))),
                other => Err(other.wrong_type_error(name).into()),
            },
            FieldType::Bytes => Ok(Value::String(decode::base64(scalar.bytes(name)?))),
            FieldType::Time => timestamp(scalar.bytes(name)?, false),
            FieldType::MicroTime => timestamp(scalar.bytes(name)?, true),
            FieldType::Quantity => quantity(scalar.bytes(name)?),
            FieldType::IntOrString => int_or_string(scalar.bytes(name)?),
            FieldType::Any | FieldType::AnyObject => self.raw_json(scalar.bytes(name)?),
            FieldType::List(_) | FieldType::Map(_) | FieldType::Ref(_) => self.element(ty, name, scalar),
        }
    }

    /// Decodes JSON inside a message.
    fn raw_json(&mut self, bytes: &[u8]) -> Result<Value> {
        let mut json: &[u8] = &[];
        let mut reader = Reader::new(bytes);
        while let Some((number, scalar)) = reader.field()? {
            if number == 1 {
                json = scalar.bytes("raw")?;
            }
        }
        if json.is_empty() {
            return Ok(Value::Null);
        }
        decode::parse_any_json(&String::from_utf8_lossy(json), self.depth, &mut self.remaining_values)
            .map_err(type_mismatch)
    }

    /// Decodes a message whose fields select the JSON shape of the value; the last field wins.
    fn value_of_shapes(&mut self, shapes: &'s [(FieldType, u32)], bytes: &[u8]) -> Result<Value> {
        if shapes.is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        let mut truth = None;
        let mut found = None;
        let mut reader = Reader::new(bytes);
        while let Some((number, scalar)) = reader.field()? {
            let Some((shape, _)) = shapes.iter().find(|(_, n)| *n == number) else { continue };
            match shape {
                FieldType::Bool => truth = Some(Value::Bool(scalar.varint("allows")? != 0)),
                FieldType::List(of) => {
                    let mut list = match found.take() {
                        Some(Value::Array(list)) => list,
                        _ => Vec::new(),
                    };
                    self.items(of, "items", scalar, &mut list)?;
                    found = Some(Value::Array(list));
                }
                shape => found = Some(self.element(shape, "schema", scalar)?),
            }
        }
        Ok(found.or(truth).unwrap_or_default())
    }
}

/// Returns a string. Invalid UTF-8 is replaced, as upstream's JSON encoder does.
fn lossy_string(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns a number as JSON prints it: integers without a fraction.
fn json_number(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        return Value::from(number as i64);
    }
    Value::from(number)
}

fn type_mismatch(error: impl Display) -> TypeMismatch {
    TypeMismatch::Value(error.to_string())
}

fn timestamp(bytes: &[u8], micro: bool) -> Result<Value> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(bytes);
    while let Some((number, scalar)) = reader.field()? {
        match number {
            1 => seconds = scalar.varint("seconds")?.cast_signed(),
            2 => nanos = scalar.varint("nanos")? as i32,
            _ => {}
        }
    }
    if seconds == ZERO_TIME && (nanos == 0 || !micro) {
        return Ok(Value::Null);
    }
    let time = Time::unix(seconds, nanos.into());
    let text = if micro { time.rfc3339_micro() } else { time.rfc3339() };
    // JSON cannot represent years with more than four digits.
    let text = text.filter(|_| time.seconds >= ZERO_TIME);
    text.map(Value::String).ok_or_else(|| type_mismatch("Time.MarshalJSON: year outside of range [0,9999]"))
}

fn quantity(bytes: &[u8]) -> Result<Value> {
    let mut value = Value::from("0");
    let mut reader = Reader::new(bytes);
    while let Some((number, scalar)) = reader.field()? {
        if number == 1 {
            value = decode::quantity(&lossy_string(scalar.bytes("string")?)).map_err(type_mismatch)?;
        }
    }
    Ok(value)
}

fn int_or_string(bytes: &[u8]) -> Result<Value> {
    let (mut kind, mut int, mut string) = (0, 0, String::new());
    let mut reader = Reader::new(bytes);
    while let Some((number, scalar)) = reader.field()? {
        match number {
            1 => kind = scalar.varint("type")?,
            2 => int = scalar.varint("intVal")? as i32,
            3 => string = lossy_string(scalar.bytes("strVal")?),
            _ => {}
        }
    }
    match kind {
        0 => Ok(Value::from(int)),
        1 => Ok(Value::String(string)),
        _ => Err(type_mismatch("impossible IntOrString.Type")),
    }
}

/// True if a scalar is the zero value of its type.
fn is_zero(ty: &FieldType, value: &Value) -> bool {
    match value {
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty() && *ty != FieldType::Bytes,
        _ => false,
    }
}
