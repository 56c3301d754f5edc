//! How a value stands in an error: as compact JSON, and no more of it than somebody would read.

use std::io::{Error, ErrorKind, Result, Write};

use serde::Serialize;

/// How much of a value an error tells, in bytes. An error may be told for each element of a list and print the whole list:
/// without a bound the answer grows with the square of the body. Upstream has none.
pub const MAX_PRINTED_BYTES: usize = 16 * 1024;

/// The value as compact JSON; of a long one the beginning and `...`.
pub(super) fn json(value: &impl Serialize) -> String {
    let mut kept = Kept(Vec::new());
    let whole = serde_json::to_writer(&mut kept, value).is_ok();
    let mut text = String::from_utf8_lossy(&kept.0).into_owned();
    if !whole {
        text.push_str("...");
    }
    text
}

/// A text, of a long one the beginning and `...`.
#[must_use]
pub fn cut(text: String) -> String {
    cut_at(text, MAX_PRINTED_BYTES)
}

/// As [`cut`], at another length.
#[must_use]
pub fn cut_at(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push_str("...");
    }
    text
}

/// Takes bytes until there are enough.
struct Kept(Vec<u8>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let room = MAX_PRINTED_BYTES.saturating_sub(self.0.len());
        if room == 0 && !bytes.is_empty() {
            return Err(Error::from(ErrorKind::WriteZero));
        }
        let taken = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_value_is_whole_and_a_long_one_begins() {
        assert_eq!(json(&["a", "b"]), r#"["a","b"]"#);
        let long = json(&vec!["é"; MAX_PRINTED_BYTES]);
        assert!(long.starts_with(r#"["é","é""#) && long.ends_with("..."));
        assert!(long.len() < MAX_PRINTED_BYTES + 8);
        assert_eq!(cut("é".to_owned()), "é");
        let (long, most) = (cut("é".repeat(MAX_PRINTED_BYTES)), MAX_PRINTED_BYTES + 3);
        assert!(long.ends_with("é...") && (most - 1..=most).contains(&long.len()));
    }
}
