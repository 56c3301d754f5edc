//! Decoding of JSON text according to a type: matching values become the object, mismatches are reported.
//!
//! The order of errors is upstream's: the error is the first value of a wrong type, but only if the whole text is valid JSON
//! and no value with its own decoder (a time, a quantity) rejects its input, which ends the decoding. Unknown and duplicate
//! text order, each once, limited in number and bytes.

use portico_machinery::Bounded;
use portico_machinery::object::cut;
use serde_json::{Map, Value};

use super::go_type::{GoType, embedded};
use super::reader::{Reader, Start, SyntaxError};
use super::scalar;
use crate::model::{Field, FieldType, Type, TypeSet};

/// Unknown and duplicate fields that a response lists.
///
/// Limit (Requests): the rest is omitted.
pub(crate) const MAX_STRICT: usize = 100;

/// Bytes of unknown and duplicate fields that a response lists.
///
/// Limit (Requests, bytes): the rest is omitted.
pub(crate) const MAX_STRICT_BYTES: usize = 64 * 1024;

/// Returns an empty list of strict errors.
pub(crate) fn strict_errors() -> Bounded<String> {
    Bounded::new(MAX_STRICT, MAX_STRICT_BYTES)
}

/// Go type into which upstream decodes the kind and version of a body.
const HEADING: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Upstream's message for a value that is neither a Boolean nor a schema; other types with several shapes report nothing.
const NEITHER: &str = "boolean or JSON schema expected";

type Result<T> = std::result::Result<T, SyntaxError>;

pub(crate) struct Walk<'a, 's> {
    reader: Reader<'a>,
    types: &'s TypeSet,
    /// Strict errors: `unknown field "x"`, `duplicate field "x"`.
    pub strict: Bounded<String>,
    /// Number of enclosing values that have their own decoder upstream: unknown fields inside them are not reported.
    unreported: usize,
    /// First value of a wrong type, or first value that its own decoder rejected.
    pub error: Option<String>,
    /// True if a value was rejected by its own decoder: later errors are ignored.
    ended: bool,
    /// Error in the kind or version of the outermost value, which upstream decodes first.
    pub heading: Option<String>,
    /// Path as strict errors print it, with keys and indices.
    path: String,
    /// Path as type errors print it, with struct fields only.
    fields: String,
    /// Name of the struct whose field is being decoded.
    owner: &'s str,
}

impl<'a, 's> Walk<'a, 's> {
    pub(crate) fn new(text: &'a str, types: &'s TypeSet) -> Self {
        Self {
            reader: Reader::new(text),
            types,
            strict: strict_errors(),
            unreported: 0,
            error: None,
            ended: false,
            heading: None,
            path: String::new(),
            fields: String::new(),
            owner: "",
        }
    }

    /// Creates a decoder of a part of stored text.
    pub(crate) fn again(text: &'a str, types: &'s TypeSet) -> Self {
        Self { reader: Reader::again(text), ..Self::new(text, types) }
    }

    /// Decodes the outermost value, which must end the text. Returns an empty map for null and for values that are not objects.
    pub(crate) fn root(&mut self, ty: &'s Type) -> Result<Map<String, Value>> {
        let map = match self.reader.start()? {
            Start::Object => self.fields_of(ty)?,
            Start::Null => {
                self.reader.null()?;
                Map::new()
            }
            start => {
                self.reader.skip()?;
                self.wrong(name_of(start), &format!("v1.{}", ty.short_name()));
                self.heading = Some(format!(
                    "json: cannot unmarshal {} into Go value of type {HEADING}",
                    name_of(start)
                ));
                Map::new()
            }
        };
        self.reader.end()?;
        Ok(map)
    }

    /// Decodes one value of this type, which must be the whole text.
    pub(crate) fn lone(&mut self, ty: &'s FieldType) -> Result<Option<Value>> {
        let value = self.value(GoType::plain(ty))?;
        self.reader.end()?;
        Ok(value)
    }

    fn wrong(&mut self, found: &str, expected: &str) {
        if matches!(self.fields.as_str(), "kind" | "apiVersion") {
            let text = format!(
                "json: cannot unmarshal {found} into Go struct field .{} of type string",
                self.fields
            );
            self.heading.get_or_insert(text);
        }
        let text = self.mismatch(found, expected);
        self.fail(text);
    }

    fn mismatch(&self, found: &str, expected: &str) -> String {
        let place = if self.owner.is_empty() {
            "value".to_owned()
        } else {
            format!("struct field {}.{}", self.owner, self.fields)
        };
        format!("json: cannot unmarshal {found} into Go {place} of type {expected}")
    }

    fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    /// Records an error of a value's own decoder, which ends the decoding.
    fn end(&mut self, error: String) {
        if !self.ended {
            self.ended = true;
            self.error = Some(error);
        }
    }

    fn report(&mut self, what: &str, key: &str) {
        if self.unreported > 0 {
            return;
        }
        self.strict.push_new_with(|| {
            let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
            format!("{what} field {:?}", cut(path))
        });
    }

    /// Decodes one value of this type. Returns `None` for null and for values of a wrong type.
    fn value(&mut self, of: GoType<'s>) -> Result<Option<Value>> {
        let (ty, start) = (of.ty, self.reader.start()?);
        if start == Start::Null {
            self.reader.null()?;
            return Ok(None);
        }
        if self.types.shapes(ty).is_some_and(|shapes| !shapes.is_empty()) {
            return self.shaped(ty, start);
        }
        match (self.types.resolve(ty), start) {
            (FieldType::Any | FieldType::AnyObject, _) => self.reader.any().map(Some),
            (FieldType::Ref(id), Start::Object) => {
                let owner = self.owner;
                let map = self.fields_of(self.types.get(*id))?;
                self.owner = owner;
                Ok(Some(Value::Object(map)))
            }
            (FieldType::Map(inner), Start::Object) => self.map(of.element(inner)).map(Some),
            (FieldType::List(inner), Start::Array) => self.list(of.element(inner)).map(Some),
            (FieldType::Bytes, Start::Array) => self.numbers().map(Some),
            (plain, Start::Object | Start::Array) => {
                self.reader.skip()?;
                self.misfit(plain, of, name_of(start));
                Ok(None)
            }
            (plain, _) => self.scalar(plain, of, start),
        }
    }

    /// Decodes a value that may have several shapes. Such types have their own decoders upstream, so unknown fields inside are
    /// not reported.
    fn shaped(&mut self, ty: &'s FieldType, start: Start) -> Result<Option<Value>> {
        let Some(shape) = self.types.shape(ty, |shape| takes(shape, start)) else {
            self.reader.any()?;
            if self.types.shape(ty, |shape| *shape == FieldType::Bool).is_some() {
                self.end(NEITHER.to_owned());
            }
            return Ok(None);
        };
        self.unreported += 1;
        let value = self.value(GoType::plain(shape));
        self.unreported -= 1;
        value
    }

    fn misfit(&mut self, ty: &FieldType, of: GoType<'s>, found: &str) {
        match ty {
            FieldType::Time | FieldType::MicroTime => self.end(self.mismatch(found, "string")),
            FieldType::IntOrString => self.end(self.mismatch(found, "int32")),
            FieldType::Quantity => self.end(scalar::no_quantity()),
            _ => self.wrong(found, &of.name(self.types)),
        }
    }

    fn scalar(&mut self, ty: &FieldType, of: GoType<'s>, start: Start) -> Result<Option<Value>> {
        let read = match start {
            Start::String => scalar::from_string(ty, self.reader.string()?),
            Start::Number => scalar::from_number(ty, self.reader.number()?),
            _ => scalar::from_bool(ty, self.reader.bool()?),
        };
        match read {
            Ok(value) => return Ok(Some(value)),
            Err(scalar::TypeMismatch::Type(found)) => self.misfit(ty, of, &found),
            Err(scalar::TypeMismatch::Text(error)) if *ty == FieldType::Bytes => self.fail(error),
            Err(scalar::TypeMismatch::Text(error)) => self.end(error),
        }
        Ok(None)
    }

    /// Decodes bytes from a list of numbers, which upstream also accepts.
    fn numbers(&mut self) -> Result<Value> {
        self.reader.enter()?;
        let mut bytes = Vec::new();
        while self.reader.element(bytes.is_empty())? {
            bytes.push(self.byte()?);
        }
        Ok(Value::String(scalar::base64(&bytes)))
    }

    fn byte(&mut self) -> Result<u8> {
        let start = self.reader.start()?;
        if start != Start::Number {
            self.reader.skip()?;
            if start != Start::Null {
                self.wrong(name_of(start), "uint8");
            }
            return Ok(0);
        }
        let text = self.reader.number()?;
        let byte = text.parse();
        if byte.is_err() {
            self.wrong(&format!("number {text}"), "uint8");
        }
        Ok(byte.unwrap_or_default())
    }

    fn fields_of(&mut self, ty: &'s Type) -> Result<Map<String, Value>> {
        self.reader.enter()?;
        let mut map = Map::new();
        let mut seen = 0_u128;
        let (path, fields) = (self.path.len(), self.fields.len());
        let mut first = true;
        while let Some(key) = self.reader.key(first)? {
            first = false;
            let Some(at) = ty.field_index(&key) else {
                self.report("unknown", &key);
                self.reader.skip()?;
                continue;
            };
            let field = &ty.fields[at];
            let mark = 1_u128.checked_shl(u32::try_from(at).unwrap_or(u32::MAX)).unwrap_or(0);
            let again = seen & mark != 0 || map.contains_key(&*field.name);
            if again {
                self.report("duplicate", &key);
            }
            seen |= mark;
            push(&mut self.path, &field.name);
            if let Some(message) = &field.inside {
                push_all(&mut self.fields, embedded(message));
            }
            push(&mut self.fields, &field.name);
            self.owner = ty.short_name();
            let value = self.value(GoType::of(field))?;
            self.path.truncate(path);
            self.fields.truncate(fields);
            put(&mut map, field, value, again);
        }
        Ok(map)
    }

    fn map(&mut self, of: GoType<'s>) -> Result<Value> {
        self.reader.enter()?;
        let mut map = Map::new();
        let path = self.path.len();
        let mut first = true;
        while let Some(key) = self.reader.key(first)? {
            first = false;
            if map.contains_key(&*key) {
                self.report("duplicate", &key);
            }
            push(&mut self.path, &key);
            let value = self.inside(of)?;
            self.path.truncate(path);
            map.insert(key.into_owned(), value);
        }
        Ok(Value::Object(map))
    }

    fn list(&mut self, of: GoType<'s>) -> Result<Value> {
        use std::fmt::Write as _;
        self.reader.enter()?;
        let mut list = Vec::new();
        let path = self.path.len();
        while self.reader.element(list.is_empty())? {
            // Writing to a string cannot fail.
            let _ = write!(self.path, "[{}]", list.len());
            let value = self.inside(of)?;
            self.path.truncate(path);
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    /// Decodes a value inside a list or map, where null means the zero value.
    fn inside(&mut self, of: GoType<'s>) -> Result<Value> {
        if let Some(value) = self.value(of)? {
            return Ok(value);
        }
        if *self.types.resolve(of.ty) == FieldType::Bytes {
            // Null in memory, and empty after storage.
            return Ok(Value::String(String::new()));
        }
        Ok(self.types.zero(of.ty))
    }
}

/// True if a value of this kind has this shape.
fn takes(shape: &FieldType, start: Start) -> bool {
    matches!(
        (shape, start),
        (FieldType::Ref(_), Start::Object)
            | (FieldType::List(_), Start::Array)
            | (FieldType::Bool, Start::Bool)
    )
}

fn push(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

fn push_all(path: &mut String, name: impl Iterator<Item = char>) {
    push(path, "");
    path.extend(name);
}

/// Stores the value of a field. A repeated field is merged into its first occurrence, as upstream does.
fn put(map: &mut Map<String, Value>, field: &Field, value: Option<Value>, again: bool) {
    match (value, again) {
        (Some(Value::Object(more)), true) => {
            if let Some(Value::Object(old)) = map.get_mut(&*field.name) {
                old.extend(more);
            } else {
                map.insert(field.name.to_string(), Value::Object(more));
            }
        }
        (Some(value), _) => {
            map.insert(field.name.to_string(), value);
        }
        (None, true) if field.emit.is_pointer() || !is_scalar(&field.ty) => {
            map.shift_remove(&*field.name);
        }
        (None, _) => {}
    }
}

fn is_scalar(ty: &FieldType) -> bool {
    !matches!(ty, FieldType::List(_) | FieldType::Map(_) | FieldType::Ref(_))
}

fn name_of(start: Start) -> &'static str {
    match start {
        Start::Object => "object",
        Start::Array => "array",
        Start::String => "string",
        Start::Number => "number",
        Start::Bool => "bool",
        Start::Null => "null",
    }
}
