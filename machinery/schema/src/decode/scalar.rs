//! Decoding of scalars by type: number ranges, base64, times, int-or-string, quantities; with upstream's messages.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::general_purpose::{GeneralPurpose, PAD, STANDARD};
use portico_machinery::Quantity;
use portico_machinery::quantity::QuantityError;
use serde_json::Value;

use super::reader::number_value;
use super::times;
use crate::model::FieldType;

/// Padded base64 that tolerates stray bits in the last symbol, as upstream's decoder does.
const LENIENT_BASE64: GeneralPurpose =
    GeneralPurpose::new(&ALPHABET, PAD.with_decode_allow_trailing_bits(true));

/// Reason why a scalar does not match its type.
pub(super) enum TypeMismatch {
    /// Value of another JSON type, with upstream's name of that type.
    Type(String),
    /// Invalid value of the right JSON type, with upstream's complete message.
    Text(String),
}

type Result = std::result::Result<Value, TypeMismatch>;

pub(super) fn from_string(ty: &FieldType, text: Cow<'_, str>) -> Result {
    match ty {
        FieldType::String | FieldType::IntOrString => Ok(Value::String(text.into_owned())),
        FieldType::Bytes => bytes(text.into_owned()).map(Value::String),
        FieldType::Time => times::canonical_seconds(&text).map(Value::String).map_err(TypeMismatch::Text),
        FieldType::MicroTime => times::canonical_micros(&text).map(Value::String).map_err(TypeMismatch::Text),
        FieldType::Quantity => quantity(&text),
        _ => Err(TypeMismatch::Type("string".to_owned())),
    }
}

pub(super) fn from_number(ty: &FieldType, text: &str) -> Result {
    let out_of_range = || TypeMismatch::Type(format!("number {text}"));
    match ty {
        FieldType::Int32 | FieldType::IntOrString => {
            text.parse::<i32>().map(Value::from).map_err(|_| out_of_range())
        }
        FieldType::Int64 => text.parse::<i64>().map(Value::from).map_err(|_| out_of_range()),
        FieldType::Number => number_value(text).ok_or_else(out_of_range),
        FieldType::Quantity => quantity(text),
        _ => Err(TypeMismatch::Type("number".to_owned())),
    }
}

pub(super) fn from_bool(ty: &FieldType, truth: bool) -> Result {
    match ty {
        FieldType::Bool => Ok(Value::Bool(truth)),
        _ => Err(TypeMismatch::Type("bool".to_owned())),
    }
}

/// Returns the canonical base64 of the same bytes. Line breaks inside are ignored, as upstream does.
fn bytes(mut text: String) -> std::result::Result<String, TypeMismatch> {
    text.retain(|c| c != '\r' && c != '\n');
    let bytes = LENIENT_BASE64.decode(&text).map_err(|error| {
        use base64::DecodeError as E;
        let position = match error {
            E::InvalidByte(offset, _) | E::InvalidLastSymbol { offset, .. } => offset,
            E::InvalidPadding if text.contains('=') => text.len(),
            // Start of the incomplete group.
            E::InvalidLength(_) | E::InvalidPadding => text.len() / 4 * 4,
        };
        TypeMismatch::Text(format!("illegal base64 data at input byte {position}"))
    })?;
    if text.ends_with('=') {
        text = STANDARD.encode(bytes);
    }
    Ok(text)
}

/// Encodes bytes as JSON does.
pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn quantity(text: &str) -> Result {
    canonical_quantity(text).map_err(TypeMismatch::Text)
}

/// Returns the error for a value that is neither a string nor a number: upstream parses its text as a quantity and fails.
pub(super) fn quantity_format_error() -> String {
    QuantityError::Format.to_string()
}

/// Parses a quantity and returns its canonical form.
pub(crate) fn canonical_quantity(text: &str) -> std::result::Result<Value, String> {
    let quantity = text.trim().parse::<Quantity>().map_err(|error| error.to_string())?;
    Ok(Value::String(quantity.to_string()))
}
