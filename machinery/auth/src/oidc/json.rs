//! Members of JSON as Go's `json.Unmarshal` reads them, and its words for what does not fit.

use portico_gostd::json::error_text;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Reads an object; a list would do for serde, field by field.
pub(super) fn object<T: for<'de> Deserialize<'de>>(json: &[u8]) -> Result<T, String> {
    match json.trim_ascii_start().first() {
        Some(b'{') => serde_json::from_slice(json).map_err(|error| error_text(&error)),
        _ => Err("JSON of another form than expected".to_owned()),
    }
}

/// What upstream's `json.Unmarshal` says of a value of another type.
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

/// A text; nothing for what is none. `null` leaves it empty.
pub(super) fn text(raw: &RawValue) -> Option<String> {
    if is_null(raw) { Some(String::new()) } else { serde_json::from_str(raw.get()).ok() }
}

/// A list of texts; `null` is none of them, as an element an empty one.
pub(super) fn texts(raw: &RawValue) -> Option<Vec<String>> {
    if is_null(raw) {
        return Some(Vec::new());
    }
    let items: Vec<Option<String>> = serde_json::from_str(raw.get()).ok()?;
    Some(items.into_iter().map(Option::unwrap_or_default).collect())
}

/// Seconds since the epoch, as whole or broken number, or as the text of one (`jsonTime`).
pub(super) fn seconds(raw: &RawValue) -> Option<i64> {
    let text = match raw.get().as_bytes().first() {
        Some(b'"') => text(raw)?,
        Some(b'-' | b'0'..=b'9') => raw.get().to_owned(),
        _ => return None,
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "seconds are cut off, and what is out of range stays at its end"
    )]
    text.parse().ok().or_else(|| text.parse::<f64>().ok().filter(|n| n.is_finite()).map(|n| n as i64))
}
