//! Strict decoding of bytes into an object of a given type, with upstream's error messages.

mod convert;
mod error;
mod go_type;
mod json_decoder;
mod limits;
mod reader;
mod scalar;
pub(crate) mod times;
mod yaml;
mod yaml_errors;
mod yaml_keys;
mod yaml_tags;

pub(crate) use convert::convert;
pub(crate) use error::body_prefix;
pub use error::{DecodeError, patch_status};
pub(crate) use json_decoder::{MAX_STRICT, MAX_STRICT_BYTES, strict_errors};
pub(crate) use limits::{MAX_VALUES, TooManyValues};
pub use reader::syntax_error_in;
pub(crate) use reader::{Reader, SyntaxError, ValueKind, number_value};
pub(crate) use scalar::{base64, canonical_quantity as quantity};
pub use yaml_keys::{duplicate_keys, warnings};

use portico_machinery::gvk::GroupVersionKind;
use portico_machinery::{Node, Object, Status};

use serde_json::Value;

use self::json_decoder::JsonDecoder;
use crate::normalize::value_floats_to_integers;
use crate::protobuf;
use crate::typed::Typed;

/// Encoding of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Json,
    /// YAML 1.1, including its subset JSON.
    Yaml,
    /// Enveloped protobuf.
    Protobuf,
}

impl Format {
    /// Returns the format of a request's `Content-Type` without parameters; empty means JSON. Returns `None` for formats that
    /// are not decoded here and get 415.
    #[must_use]
    pub fn of_media_type(media_type: &str) -> Option<Self> {
        match media_type {
            "" | "application/json" => Some(Self::Json),
            "application/yaml" => Some(Self::Yaml),
            "application/vnd.kubernetes.protobuf" => Some(Self::Protobuf),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// Decoded object.
    pub object: Object,
    /// Errors under strict field validation, with upstream's messages and order: `unknown field "spec.x"`,
    /// `duplicate field "a"`. With fieldValidation=Warn they become [`warnings`].
    pub strict: Vec<String>,
}

impl Decoded {
    /// Returns the response under fieldValidation=Strict, or `None` if there are no strict errors.
    #[must_use]
    pub fn strict_status(&self, expected: &GroupVersionKind) -> Option<Status> {
        self.strict_text().map(|text| error::cannot_be_handled(expected, &expected.kind, &text))
    }

    /// Returns the response for the result of a patch with strict errors: 422 on the field `patch`.
    #[must_use]
    pub fn strict_patch_status(&self, patch: &str) -> Status {
        error::patch_status(patch, &self.strict_text().unwrap_or_default())
    }

    fn strict_text(&self) -> Option<String> {
        (!self.strict.is_empty()).then(|| format!("strict decoding error: {}", self.strict.join(", ")))
    }
}

/// Rewords the diagnostics of a YAML body as upstream's YAML reader words them.
pub(crate) fn reword_diagnostics(body: &[u8], format: Format, mut decoded: Decoded) -> Decoded {
    if format == Format::Yaml {
        yaml_keys::reword_duplicates(body, &mut decoded.strict);
    }
    decoded
}

pub(crate) fn decode_object(
    schema: &Typed,
    body: &[u8],
    format: Format,
    expected: &GroupVersionKind,
) -> Result<Decoded, DecodeError> {
    let (decoded, error) = decode_body(schema, body, format, &expected.kind)?;
    let (kind, version) = (decoded.object.kind(), decoded.object.api_version());
    let expected_version = expected.group_version().to_string();
    let found = found_gvk(&decoded.object, expected);
    let refuse = |error: String| DecodeError::CannotBeHandled {
        found: found.clone(),
        expected: expected.kind.clone(),
        error,
    };
    if !kind.is_empty() && kind != expected.kind {
        return Err(DecodeError::WrongKind { found, expected: expected.kind.clone() });
    }
    if let Some(error) = error {
        return Err(refuse(error));
    }
    if !version.is_empty() && version != expected_version && !is_legacy_version(version, expected) {
        return Err(DecodeError::Version { found: version.to_owned(), expected: expected_version });
    }
    let Decoded { mut object, strict } = decoded;
    object.set(&["kind"], &expected.kind);
    object.set(&["apiVersion"], expected_version);
    Ok(Decoded { object, strict })
}

/// True for a version that is not served but in which older clients send the same object: evictions of `kubectl drain`.
fn is_legacy_version(version: &str, expected: &GroupVersionKind) -> bool {
    (expected.group.as_str(), expected.kind.as_str(), version) == ("policy", "Eviction", "policy/v1beta1")
}

pub(crate) fn decode_untagged(schema: &Typed, body: &[u8], format: Format) -> Result<Decoded, DecodeError> {
    let expected = schema.root().short_name();
    let (decoded, error) = decode_body(schema, body, format, expected)?;
    match error {
        None => Ok(decoded),
        Some(error) => Err(DecodeError::CannotBeHandled {
            found: GroupVersionKind {
                version: "v1".to_owned(),
                kind: expected.to_owned(),
                ..Default::default()
            },
            expected: expected.to_owned(),
            error,
        }),
    }
}

/// Returns the kind and version in a body, with missing parts taken from the expected ones.
fn found_gvk(object: &Object, expected: &GroupVersionKind) -> GroupVersionKind {
    let mut found = object.gvk().filter(|gvk| !gvk.version.is_empty()).unwrap_or_else(|| expected.clone());
    if !object.kind().is_empty() {
        object.kind().clone_into(&mut found.kind);
    } else {
        found.kind.clone_from(&expected.kind);
    }
    found
}

/// Decodes a body. Returns the object, and the error of the first value of a wrong type.
fn decode_body(
    schema: &Typed,
    body: &[u8],
    format: Format,
    expected: &str,
) -> Result<(Decoded, Option<String>), DecodeError> {
    if format == Format::Protobuf {
        return decode_protobuf(schema, body, expected);
    }
    parse_text(body, format, expected, |json| decode_json_body(schema, json))
}

/// Parses a JSON or YAML body, the latter after conversion to JSON.
pub(crate) fn parse_text<T>(
    body: &[u8],
    format: Format,
    expected: &str,
    read: impl Fn(&str) -> Result<T, SyntaxError>,
) -> Result<T, DecodeError> {
    let syntax = |error: String| DecodeError::Syntax {
        expected: expected.to_owned(),
        error: format!("json parse error: {error}"),
        head: error::body_prefix(body),
    };
    let text = String::from_utf8_lossy(body);
    let looks_like_json = text.trim_start().starts_with('{');
    if format == Format::Json || looks_like_json {
        match (read(&text), format) {
            (Ok(read), _) => return Ok(read),
            (Err(error), Format::Json) => return Err(syntax(error.0)),
            // A YAML flow mapping begins like JSON.
            (Err(_), _) => {}
        }
    }
    let of_yaml = |error: String| DecodeError::Unrecognized {
        expected: expected.to_owned(),
        error,
        head: error::body_prefix(body),
    };
    let json = yaml::to_json(&text).map_err(of_yaml)?;
    read(&json).map_err(|error| syntax(error.0))
}

/// Parses YAML or JSON text into an object of any kind. If a key is duplicated, the last value wins.
///
/// # Errors
/// Message of the parser.
pub fn parse_object(text: &str) -> Result<Object, String> {
    Object::from_node(Node(parse_any(text)?)).map_err(|error| error.to_string())
}

/// Parses an applied configuration without conversion. If a key is duplicated, the last value wins. Null is an empty object.
pub(crate) fn parse_configuration(body: &[u8]) -> Result<Object, DecodeError> {
    let reason = match parse_any(&String::from_utf8_lossy(body)) {
        Ok(Value::Null) => return Ok(Object::default()),
        Ok(Value::Object(map)) => return Ok(Object::from_map(map)),
        Ok(other) => format!(
            "error unmarshaling JSON: while decoding JSON: \
             json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_type_name(&other)
        ),
        Err(error) => error,
    };
    Err(DecodeError::Configuration(reason))
}

/// Parses YAML or JSON text into a value. If a key is duplicated, the last value wins.
fn parse_any(text: &str) -> Result<Value, String> {
    let read = |text: &str| {
        let mut reader = Reader::new(text);
        reader.any().and_then(|value| reader.end().map(|()| value)).map_err(|error| error.0)
    };
    match read(text) {
        // Upstream parses JSON as YAML, where 1.0 becomes 1.
        Ok(mut value) => {
            value_floats_to_integers(&mut value);
            Ok(value)
        }
        Err(_) => yaml::to_json(text)
            .map_err(|error| format!("error converting YAML to JSON: {error}"))
            .and_then(|json| read(&json)),
    }
}

/// Decodes the JSON of a body; an invalid kind or version is reported first, as upstream does.
fn decode_json_body(schema: &Typed, text: &str) -> Result<(Decoded, Option<String>), SyntaxError> {
    let mut walk = JsonDecoder::new(text, schema.types());
    let map = walk.root(schema.root())?;
    match walk.type_meta_error {
        Some(error) => Err(SyntaxError(error)),
        None => Ok((Decoded { object: Object::from_map(map), strict: walk.strict.into_items() }, walk.error)),
    }
}

/// Decodes the JSON of metadata that has been parsed before.
pub(crate) fn decode_metadata_json(
    schema: &Typed,
    text: &str,
) -> Result<(Decoded, Option<String>), SyntaxError> {
    let mut walk = JsonDecoder::stored_part(text, schema.types());
    let map = walk.root(schema.root())?;
    Ok((Decoded { object: Object::from_map(map), strict: walk.strict.into_items() }, walk.error))
}

/// Decodes protobuf, which has no strict errors: unknown fields are normal between versions.
fn decode_protobuf(
    schema: &Typed,
    body: &[u8],
    expected: &str,
) -> Result<(Decoded, Option<String>), DecodeError> {
    let read = protobuf::decode_document(schema.types(), schema.root(), body);
    let (object, type_mismatch) = read.map_err(|error| DecodeError::Unrecognized {
        expected: expected.to_owned(),
        error: error.to_string(),
        head: error::body_prefix(body),
    })?;
    Ok((Decoded { object, strict: Vec::new() }, type_mismatch.map(|m| m.to_string())))
}

/// Returns the name of a value's type in upstream's JSON errors.
pub(crate) fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Parses any JSON nested at this depth of an object, with a limit of remaining values.
pub(crate) fn parse_any_json(
    text: &str,
    depth: usize,
    remaining_values: &mut usize,
) -> Result<Value, SyntaxError> {
    let mut reader = Reader::nested(text, depth, *remaining_values);
    let value = reader.any()?;
    reader.end()?;
    *remaining_values = reader.remaining_values();
    Ok(value)
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
