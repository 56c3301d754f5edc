//! Views of an input for targets.

use std::borrow::Cow;

/// Returns the input as text; invalid UTF-8 is replaced.
pub fn text(input: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(input)
}

/// Splits the input at the first line end.
pub fn halves(input: &[u8]) -> (&[u8], &[u8]) {
    match input.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&input[..at], &input[at + 1..]),
        None => (input, &[]),
    }
}
