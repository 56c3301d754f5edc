//! Scalars along a type: numbers that fit, base64, times, int-or-string, quantities; with upstream's words.

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
const LENIENT: GeneralPurpose = GeneralPurpose::new(&ALPHABET, PAD.with_decode_allow_trailing_bits(true));

/// Why a scalar does not fit.
pub(super) enum TypeMismatch {
    /// It is of another JSON type, named as upstream names it.
    Type(String),
    /// It is of the right JSON type; upstream's whole error.
    Text(String),
}

type Result = std::result::Result<Value, TypeMismatch>;

pub(super) fn from_string(ty: &FieldType, text: Cow<'_, str>) -> Result {
    match ty {
        FieldType::String | FieldType::IntOrString => Ok(Value::String(text.into_owned())),
        FieldType::Bytes => bytes(text.into_owned()).map(Value::String),
        FieldType::Time => times::seconds(&text).map(Value::String).map_err(TypeMismatch::Text),
        FieldType::MicroTime => times::micros(&text).map(Value::String).map_err(TypeMismatch::Text),
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

/// Canonical base64 of the same bytes; line breaks inside are ignored, as upstream ignores them.
fn bytes(mut text: String) -> std::result::Result<String, TypeMismatch> {
    text.retain(|c| c != '\r' && c != '\n');
    let bytes = LENIENT.decode(&text).map_err(|error| {
        use base64::DecodeError as E;
        let at = match error {
            E::InvalidByte(at, _) | E::InvalidLastSymbol { offset: at, .. } => at,
            E::InvalidPadding if text.contains('=') => text.len(),
            // Where the group begins that is not whole.
            E::InvalidLength(_) | E::InvalidPadding => text.len() / 4 * 4,
        };
        TypeMismatch::Text(format!("illegal base64 data at input byte {at}"))
    })?;
    if text.ends_with('=') {
        text = STANDARD.encode(bytes);
    }
    Ok(text)
}

/// Bytes as JSON writes them.
pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn quantity(text: &str) -> Result {
    quantity_text(text).map_err(TypeMismatch::Text)
}

/// What is neither text nor number is text to a quantity, and no quantity.
pub(super) fn no_quantity() -> String {
    QuantityError::Format.to_string()
}

/// A quantity in its canonical spelling.
pub(crate) fn quantity_text(text: &str) -> std::result::Result<Value, String> {
    let quantity = text.trim().parse::<Quantity>().map_err(|error| error.to_string())?;
    Ok(Value::String(quantity.to_string()))
}
