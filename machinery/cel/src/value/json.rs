//! Values borrowed from JSON.

use portico_gostd::json::go_type;
use portico_gostd::strfmt;
use serde_json::Value as Json;

use super::{Duration, List, Map, Text, Timestamp, Value};
use crate::decl::{DeclKind, DeclType};
use crate::error::EvalError;

/// Length of the text of a duration that an expression reads from an object.
///
/// Limit (Expressions, bytes): the expression fails.
const MAX_DURATION: usize = 4_096;

/// Returns JSON as a value, without copying it.
///
/// # Errors
/// The JSON does not match its declaration: `invalid data, expected string, got ...`.
pub fn from_json<'v>(json: &'v Json, of: &'v DeclType) -> Result<Value<'v>, EvalError> {
    if json.is_null() {
        return if of.nullable {
            Ok(Value::Null)
        } else {
            Err(EvalError::new("invalid data, got null for schema with nullable=false"))
        };
    }
    match &of.kind {
        DeclKind::Dyn => Ok(dynamic(json)),
        DeclKind::IntOrString => int_or_string(json),
        DeclKind::List { .. } => match json {
            Json::Array(array) => Ok(Value::List(List::Json { array, of })),
            _ => {
                Err(EvalError::new("invalid data, expected an array for the provided schema with type=array"))
            }
        },
        DeclKind::Map { .. } | DeclKind::Object(_) => match json {
            Json::Object(members) => Ok(Value::Map(Map::Json { members, of })),
            _ => Err(EvalError::new("invalid data, expected a map for the provided schema with type=object")),
        },
        DeclKind::Bool => json.as_bool().map(Value::Bool).ok_or_else(|| mismatch("bool", json)),
        DeclKind::Int => json.as_i64().map(Value::Int).ok_or_else(|| mismatch("int", json)),
        DeclKind::Double => json.as_f64().map(Value::Double).ok_or_else(|| mismatch("float", json)),
        _ => value_by_format(json.as_str().ok_or_else(|| mismatch("string", json))?, of),
    }
}

fn mismatch(expected: &str, json: &Json) -> EvalError {
    EvalError::new(format!("invalid data, expected {expected}, got {}", go_type(json)))
}

pub(super) fn dynamic(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Value::Int(value),
            (None, Some(value)) => Value::Uint(value),
            _ => Value::Double(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(array) => Value::List(List::Json { array, of: DeclType::dynamic() }),
        Json::Object(members) => Value::Map(Map::Json { members, of: DeclType::dynamic() }),
    }
}

fn int_or_string(json: &Json) -> Result<Value<'_>, EvalError> {
    match json {
        Json::String(text) => Ok(Value::from(text.as_str())),
        Json::Number(number) if number.is_i64() => Ok(Value::Int(number.as_i64().unwrap_or_default())),
        _ => {
            Err(EvalError::new("invalid data, expected XIntOrString value to be either a string or integer"))
        }
    }
}

/// Returns data that was added to a declared list. Computed values that are not plain data do not match the declaration.
pub(super) fn with_declaration<'v>(value: Value<'v>, of: &'v DeclType) -> Result<Value<'v>, EvalError> {
    let type_mismatch = |expected: &str| Err(EvalError::new(format!("invalid data, expected {expected}")));
    match (value, &of.kind) {
        (Value::String(text), DeclKind::Duration | DeclKind::Date | DeclKind::DateTime | DeclKind::Bytes) => {
            read(&text, of).unwrap_or(Ok(Value::String(text)))
        }
        (Value::Null, DeclKind::String) if !of.nullable => type_mismatch("string, got structpb.NullValue"),
        (Value::Timestamp(_), _) => type_mismatch("string, got time.Time"),
        (Value::Duration(_), _) => type_mismatch("string, got time.Duration"),
        (Value::Bytes(_), _) => type_mismatch("string, got []uint8"),
        #[expect(clippy::cast_precision_loss, reason = "JSON numbers are doubles")]
        (Value::Int(number), DeclKind::Double) => Ok(Value::Double(number as f64)),
        (Value::List(List::Json { array, .. }), DeclKind::List { .. }) => {
            Ok(Value::List(List::Json { array, of }))
        }
        (Value::List(List::Computed { of: None, .. }), DeclKind::List { .. }) => {
            type_mismatch("an array for the provided schema with type=array")
        }
        (Value::Map(Map::Json { members, .. }), DeclKind::Map { .. } | DeclKind::Object(_)) => {
            Ok(Value::Map(Map::Json { members, of }))
        }
        (Value::Map(Map::Computed(_) | Map::Object { .. }), DeclKind::Map { .. } | DeclKind::Object(_)) => {
            type_mismatch("a map for the provided schema with type=object")
        }
        (value, _) => Ok(value),
    }
}

fn value_by_format<'v>(text: &'v str, of: &DeclType) -> Result<Value<'v>, EvalError> {
    read(text, of).unwrap_or(Ok(Value::String(Text::Borrowed(text))))
}

/// Converts a string with a format, such as a date. Returns `None` if it stays a string.
fn read(text: &str, of: &DeclType) -> Option<Result<Value<'static>, EvalError>> {
    Some(match of.kind {
        DeclKind::Duration if text.len() > MAX_DURATION => {
            Err(EvalError::new("Invalid duration: it is too long"))
        }
        DeclKind::Duration => strfmt::parse_duration(text)
            .map(|nanos| Value::Duration(Duration { nanos }))
            .map_err(|error| EvalError::new(format!("Invalid duration {text}: {error}"))),
        DeclKind::Date => Timestamp::parse_date(text)
            .map(Value::Timestamp)
            .map_err(|error| EvalError::new(format!("Invalid date formatted string {text}: {error}"))),
        DeclKind::DateTime => Timestamp::parse_loose(text)
            .map(Value::Timestamp)
            .map_err(|error| EvalError::new(format!("Invalid date-time formatted string {text}: {error}"))),
        DeclKind::Bytes => decode(text).map(|bytes| Value::Bytes(bytes.into())).map_err(|position| {
            let reason = format!("illegal base64 data at input byte {position}");
            EvalError::new(format!("Invalid byte formatted string {text}: {reason}"))
        }),
        _ => return None,
    })
}

/// Decodes base64 with the URL alphabet, as kube-apiserver does. The error contains the offset.
fn decode(text: &str) -> Result<Vec<u8>, usize> {
    use base64::DecodeError::{InvalidByte, InvalidLastSymbol};
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE.decode(text).map_err(|error| match error {
        InvalidByte(offset, _) | InvalidLastSymbol { offset, .. } => offset,
        _ => text.len() / 4 * 4,
    })
}
