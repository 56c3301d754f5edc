//! Keys and values that are neither maps nor sequences.

use std::borrow::Cow;

use portico_machinery::object::Float;

use super::text::text;

/// Maximum bytes of a key that is written on the same line as its value.
const MAX_SIMPLE_KEY: usize = 128;

/// True if a key is written on the same line as its value.
pub(super) fn is_simple(key: &str) -> bool {
    key.len() <= MAX_SIMPLE_KEY && !key.contains('\n')
}

/// Decodes a JSON string.
pub(super) fn string(raw: &str) -> Option<Cow<'_, str>> {
    #[derive(serde::Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

    serde_json::from_str::<Text<'_>>(raw).ok().map(|text| text.0)
}

/// True for a number that upstream converts to a float before writing it.
fn is_float(raw: &str) -> bool {
    raw.contains(['.', 'e', 'E']) && !raw.starts_with(['t', 'f', 'n'])
        || raw.starts_with(|c: char| c == '-' || c.is_ascii_digit())
            && raw.parse::<i64>().is_err()
            && raw.parse::<u64>().is_err()
}

/// Writes a value that is neither a map nor a sequence.
pub(super) fn scalar(raw: &str, indent: usize, out: &mut String) -> Option<()> {
    if raw.starts_with('"') {
        text(&string(raw)?, indent, out);
    } else {
        plain(raw, out);
    }
    Some(())
}

/// Writes a number, a Boolean or null.
pub(super) fn plain(raw: &str, out: &mut String) {
    match raw.parse().ok().filter(|_| is_float(raw)) {
        Some(float) => out.push_str(&Float(float).to_string()),
        None => out.push_str(raw),
    }
}
