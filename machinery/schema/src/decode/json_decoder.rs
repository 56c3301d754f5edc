//! Decoding of JSON text according to a type: matching values become the object, mismatches are reported.
//!
//! The order of errors is upstream's: the error is the first value of a wrong type, but only if the whole text is valid JSON
//! and no value with its own decoder (a time, a quantity) rejects its input, which ends the decoding. Unknown and duplicate
//! text order, each once, limited in number and bytes.

use portico_machinery::Bounded;
use portico_machinery::object::cut;
use serde_json::{Map, Value};

use super::go_type::{GoType, embedded_struct_name};
use super::reader::{Reader, SyntaxError, ValueKind};
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
const TYPE_META_GO_TYPE: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Upstream's message for a value that is neither a Boolean nor a schema; other types with several shapes report nothing.
const BOOL_OR_SCHEMA_EXPECTED: &str = "boolean or JSON schema expected";

type Result<T> = std::result::Result<T, SyntaxError>;

pub(crate) struct JsonDecoder<'a, 's> {
    reader: Reader<'a>,
    types: &'s TypeSet,
    /// Strict errors: `unknown field "x"`, `duplicate field "x"`.
    pub strict: Bounded<String>,
    /// Number of enclosing values that have their own decoder upstream: unknown fields inside them are not reported.
    unreported_depth: usize,
    /// First value of a wrong type, or first value that its own decoder rejected.
    pub error: Option<String>,
    /// True if a value was rejected by its own decoder: later errors are ignored.
    has_final_error: bool,
    /// Error in the kind or version of the outermost value, which upstream decodes first.
    pub type_meta_error: Option<String>,
    /// Path as strict errors print it, with keys and indices.
    path: String,
    /// Path as type errors print it, with struct fields only.
    fields: String,
    /// Name of the struct whose field is being decoded.
    struct_name: &'s str,
}

impl<'a, 's> JsonDecoder<'a, 's> {
    pub(crate) fn new(text: &'a str, types: &'s TypeSet) -> Self {
        Self {
            reader: Reader::new(text),
            types,
            strict: strict_errors(),
            unreported_depth: 0,
            error: None,
            has_final_error: false,
            type_meta_error: None,
            path: String::new(),
            fields: String::new(),
            struct_name: "",
        }
    }

    /// Creates a decoder of a part of stored text.
    pub(crate) fn stored_part(text: &'a str, types: &'s TypeSet) -> Self {
        Self { reader: Reader::stored_part(text), ..Self::new(text, types) }
    }

    /// Decodes the outermost value, which must end the text. Returns an empty map for null and for values that are not objects.
    pub(crate) fn root(&mut self, ty: &'s Type) -> Result<Map<String, Value>> {
        let map = match self.reader.peek_kind()? {
            ValueKind::Object => self.struct_fields(ty)?,
            ValueKind::Null => {
                self.reader.null()?;
                Map::new()
            }
            start => {
                self.reader.skip()?;
                self.type_error(kind_name(start), &format!("v1.{}", ty.short_name()));
                self.type_meta_error = Some(format!(
                    "json: cannot unmarshal {} into Go value of type {TYPE_META_GO_TYPE}",
                    kind_name(start)
                ));
                Map::new()
            }
        };
        self.reader.end()?;
        Ok(map)
    }

    /// Decodes one value of this type, which must be the whole text.
    pub(crate) fn single_value(&mut self, ty: &'s FieldType) -> Result<Option<Value>> {
        let value = self.value(GoType::plain(ty))?;
        self.reader.end()?;
        Ok(value)
    }

    fn type_error(&mut self, found: &str, expected: &str) {
        if matches!(self.fields.as_str(), "kind" | "apiVersion") {
            let text = format!(
                "json: cannot unmarshal {found} into Go struct field .{} of type string",
                self.fields
            );
            self.type_meta_error.get_or_insert(text);
        }
        let text = self.mismatch(found, expected);
        self.fail(text);
    }

    fn mismatch(&self, found: &str, expected: &str) -> String {
        let target = if self.struct_name.is_empty() {
            "value".to_owned()
        } else {
            format!("struct field {}.{}", self.struct_name, self.fields)
        };
        format!("json: cannot unmarshal {found} into Go {target} of type {expected}")
    }

    fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    /// Records an error of a value's own decoder, which ends the decoding.
    fn fail_finally(&mut self, error: String) {
        if !self.has_final_error {
            self.has_final_error = true;
            self.error = Some(error);
        }
    }

    fn report(&mut self, problem: &str, key: &str) {
        if self.unreported_depth > 0 {
            return;
        }
        self.strict.push_new_with(|| {
            let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
            format!("{problem} field {:?}", cut(path))
        });
    }

    /// Decodes one value of this type. Returns `None` for null and for values of a wrong type.
    fn value(&mut self, of: GoType<'s>) -> Result<Option<Value>> {
        let (ty, start) = (of.ty, self.reader.peek_kind()?);
        if start == ValueKind::Null {
            self.reader.null()?;
            return Ok(None);
        }
        if self.types.shapes(ty).is_some_and(|shapes| !shapes.is_empty()) {
            return self.value_of_shapes(ty, start);
        }
        match (self.types.resolve(ty), start) {
            (FieldType::Any | FieldType::AnyObject, _) => self.reader.any().map(Some),
            (FieldType::Ref(id), ValueKind::Object) => {
                let owner = self.struct_name;
                let map = self.struct_fields(self.types.get(*id))?;
                self.struct_name = owner;
                Ok(Some(Value::Object(map)))
            }
            (FieldType::Map(inner), ValueKind::Object) => self.map(of.element(inner)).map(Some),
            (FieldType::List(inner), ValueKind::Array) => self.list(of.element(inner)).map(Some),
            (FieldType::Bytes, ValueKind::Array) => self.byte_list().map(Some),
            (plain, ValueKind::Object | ValueKind::Array) => {
                self.reader.skip()?;
                self.type_mismatch(plain, of, kind_name(start));
                Ok(None)
            }
            (plain, _) => self.scalar(plain, of, start),
        }
    }

    /// Decodes a value that may have several shapes. Such types have their own decoders upstream, so unknown fields inside are
    /// not reported.
    fn value_of_shapes(&mut self, ty: &'s FieldType, start: ValueKind) -> Result<Option<Value>> {
        let Some(shape) = self.types.shape(ty, |shape| matches_shape(shape, start)) else {
            self.reader.any()?;
            if self.types.shape(ty, |shape| *shape == FieldType::Bool).is_some() {
                self.fail_finally(BOOL_OR_SCHEMA_EXPECTED.to_owned());
            }
            return Ok(None);
        };
        self.unreported_depth += 1;
        let value = self.value(GoType::plain(shape));
        self.unreported_depth -= 1;
        value
    }

    fn type_mismatch(&mut self, ty: &FieldType, of: GoType<'s>, found: &str) {
        match ty {
            FieldType::Time | FieldType::MicroTime => self.fail_finally(self.mismatch(found, "string")),
            FieldType::IntOrString => self.fail_finally(self.mismatch(found, "int32")),
            FieldType::Quantity => self.fail_finally(scalar::quantity_format_error()),
            _ => self.type_error(found, &of.name(self.types)),
        }
    }

    fn scalar(&mut self, ty: &FieldType, of: GoType<'s>, start: ValueKind) -> Result<Option<Value>> {
        let read = match start {
            ValueKind::String => scalar::from_string(ty, self.reader.string()?),
            ValueKind::Number => scalar::from_number(ty, self.reader.number()?),
            _ => scalar::from_bool(ty, self.reader.bool()?),
        };
        match read {
            Ok(value) => return Ok(Some(value)),
            Err(scalar::TypeMismatch::Type(found)) => self.type_mismatch(ty, of, &found),
            Err(scalar::TypeMismatch::Text(error)) if *ty == FieldType::Bytes => self.fail(error),
            Err(scalar::TypeMismatch::Text(error)) => self.fail_finally(error),
        }
        Ok(None)
    }

    /// Decodes bytes from a list of numbers, which upstream also accepts.
    fn byte_list(&mut self) -> Result<Value> {
        self.reader.enter()?;
        let mut bytes = Vec::new();
        while self.reader.element(bytes.is_empty())? {
            bytes.push(self.byte()?);
        }
        Ok(Value::String(scalar::base64(&bytes)))
    }

    fn byte(&mut self) -> Result<u8> {
        let start = self.reader.peek_kind()?;
        if start != ValueKind::Number {
            self.reader.skip()?;
            if start != ValueKind::Null {
                self.type_error(kind_name(start), "uint8");
            }
            return Ok(0);
        }
        let text = self.reader.number()?;
        let byte = text.parse();
        if byte.is_err() {
            self.type_error(&format!("number {text}"), "uint8");
        }
        Ok(byte.unwrap_or_default())
    }

    fn struct_fields(&mut self, ty: &'s Type) -> Result<Map<String, Value>> {
        self.reader.enter()?;
        let mut map = Map::new();
        let mut seen = 0_u128;
        let (path, fields) = (self.path.len(), self.fields.len());
        let mut first = true;
        while let Some(key) = self.reader.key(first)? {
            first = false;
            let Some(index) = ty.field_index(&key) else {
                self.report("unknown", &key);
                self.reader.skip()?;
                continue;
            };
            let field = &ty.fields[index];
            let mark = 1_u128.checked_shl(u32::try_from(index).unwrap_or(u32::MAX)).unwrap_or(0);
            let again = seen & mark != 0 || map.contains_key(&*field.name);
            if again {
                self.report("duplicate", &key);
            }
            seen |= mark;
            push(&mut self.path, &field.name);
            if let Some(message) = &field.embedded_in {
                push_all(&mut self.fields, embedded_struct_name(message));
            }
            push(&mut self.fields, &field.name);
            self.struct_name = ty.short_name();
            let value = self.value(GoType::of(field))?;
            self.path.truncate(path);
            self.fields.truncate(fields);
            put_field(&mut map, field, value, again);
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
            let value = self.element_value(of)?;
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
            let value = self.element_value(of)?;
            self.path.truncate(path);
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    /// Decodes a value inside a list or map, where null means the zero value.
    fn element_value(&mut self, of: GoType<'s>) -> Result<Value> {
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
fn matches_shape(shape: &FieldType, start: ValueKind) -> bool {
    matches!(
        (shape, start),
        (FieldType::Ref(_), ValueKind::Object)
            | (FieldType::List(_), ValueKind::Array)
            | (FieldType::Bool, ValueKind::Bool)
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
fn put_field(map: &mut Map<String, Value>, field: &Field, value: Option<Value>, is_repeated: bool) {
    match (value, is_repeated) {
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

fn kind_name(start: ValueKind) -> &'static str {
    match start {
        ValueKind::Object => "object",
        ValueKind::Array => "array",
        ValueKind::String => "string",
        ValueKind::Number => "number",
        ValueKind::Bool => "bool",
        ValueKind::Null => "null",
    }
}
