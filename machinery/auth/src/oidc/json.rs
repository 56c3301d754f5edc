//! Decoding of JSON members as Go's `json.Unmarshal` does, with its error messages.

use portico_gostd::json::error_text;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Deserializes a JSON object. Rejects lists, which serde would also accept for a struct.
pub(super) fn object<T: for<'de> Deserialize<'de>>(json: &[u8]) -> Result<T, String> {
    match json.trim_ascii_start().first() {
        Some(b'{') => serde_json::from_slice(json).map_err(|error| error_text(&error)),
        _ => Err("JSON of another form than expected".to_owned()),
    }
}

/// Returns the message of Go's `json.Unmarshal` for a value of another type.
pub(super) fn mismatch(raw: &RawValue, wanted: &str) -> String {
    format!("json: cannot unmarshal {} into Go {wanted}", kind(raw))
}

fn kind(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'"') => "string",
        Some(b't' | b'f') => "bool",
        Some(b'[') => "array",
        Some(b'{') => "object",
        _ => "number",
    }
}

pub(super) fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

/// Returns a string, or `None` for other types. `null` becomes an empty string.
pub(super) fn text(raw: &RawValue) -> Option<String> {
    if is_null(raw) { Some(String::new()) } else { serde_json::from_str(raw.get()).ok() }
}

/// Returns a list of strings, or `None` for other types. `null` becomes an empty list, and as an element an empty string.
pub(super) fn texts(raw: &RawValue) -> Option<Vec<String>> {
    if is_null(raw) {
        return Some(Vec::new());
    }
    let items: Vec<Option<String>> = serde_json::from_str(raw.get()).ok()?;
    Some(items.into_iter().map(Option::unwrap_or_default).collect())
}

/// Returns seconds since the epoch, from an integer or fractional number, or from a string with one (`jsonTime`).
pub(super) fn seconds(raw: &RawValue) -> Option<i64> {
    let text = match raw.get().as_bytes().first() {
        Some(b'"') => text(raw)?,
        Some(b'-' | b'0'..=b'9') => raw.get().to_owned(),
        _ => return None,
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "fractions are truncated, and values out of range saturate"
    )]
    text.parse().ok().or_else(|| text.parse::<f64>().ok().filter(|n| n.is_finite()).map(|n| n as i64))
}
