//! How targets see an input.

use std::borrow::Cow;

/// As text; what is no UTF-8 is replaced.
pub fn text(input: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(input)
}

/// In two: before and behind the first line end.
pub fn halves(input: &[u8]) -> (&[u8], &[u8]) {
    match input.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&input[..at], &input[at + 1..]),
        None => (input, &[]),
    }
}
