//! Formatting of values in errors: a string quoted like Go's `%q`, a number bare, anything else as compact JSON. Long values
//! are truncated.

use std::io::{Error, ErrorKind, Result, Write};

use portico_gostd::strconv::quote;
use serde::Serialize;
use serde_json::Value;

use super::go::escape_html;

/// Bytes of a value, or of a field path, that an error message shows.
///
/// An error can be reported for each element of a list and print the whole list. kube-apiserver has no limit.
///
/// Limit (Requests, bytes): the rest is omitted.
pub const MAX_PRINTED_BYTES: usize = 16 * 1024;

/// Value that can be printed in an error.
pub trait Printed {
    /// Formats the value as upstream does (`field.Error`).
    fn printed(&self) -> String;
}

impl Printed for str {
    fn printed(&self) -> String {
        quote(self)
    }
}

impl Printed for String {
    fn printed(&self) -> String {
        quote(self)
    }
}

impl Printed for Value {
    fn printed(&self) -> String {
        match self {
            Self::String(text) => quote(text),
            value => go_json(value),
        }
    }
}

impl Printed for [&str] {
    fn printed(&self) -> String {
        go_json(self)
    }
}

impl<T: Printed + ?Sized> Printed for &T {
    fn printed(&self) -> String {
        (**self).printed()
    }
}

macro_rules! printed_bare {
    ($($number:ty),*) => {$(
        impl Printed for $number {
            fn printed(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

printed_bare!(bool, i32, i64, u32, u64, usize);

/// Encodes a value as compact JSON like Go. Long JSON is truncated and ends in `...`.
pub(crate) fn go_json(value: &(impl Serialize + ?Sized)) -> String {
    escape_html(&json(value)).into_owned()
}

fn json(value: &(impl Serialize + ?Sized)) -> String {
    let mut buffer = LimitedWriter(Vec::new());
    let is_complete = serde_json::to_writer(&mut buffer, value).is_ok();
    let mut text = String::from_utf8_lossy(&buffer.0).into_owned();
    if !is_complete {
        text.push_str("...");
    }
    text
}

/// Truncates a long text to [`MAX_PRINTED_BYTES`] and appends `...`.
#[must_use]
pub fn cut(text: String) -> String {
    cut_at(text, MAX_PRINTED_BYTES)
}

/// Truncates a long text to this length and appends `...`.
#[must_use]
pub fn cut_at(mut text: String, max: usize) -> String {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
        text.push_str("...");
    }
    text
}

/// Writer that stores a limited number of bytes.
struct LimitedWriter(Vec<u8>);

impl Write for LimitedWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let room = MAX_PRINTED_BYTES.saturating_sub(self.0.len());
        if room == 0 && !bytes.is_empty() {
            return Err(Error::from(ErrorKind::WriteZero));
        }
        let count = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_go_does_it_and_the_rest_is_go_json() {
        let rows = [
            ("\u{1}a\u{7f}", r#""\x01a\x7f""#),
            ("\0\u{b}\n\t", r#""\x00\v\n\t""#),
            ("\\u{1}\"", r#""\\u{1}\"""#),
            ("\u{200b}", r#""\u200b""#),
            ("<a>", r#""<a>""#),
        ];
        for (value, want) in rows {
            assert_eq!((value.printed(), Value::from(value).printed()), (want.to_owned(), want.to_owned()));
        }
        assert_eq!(["<\u{7f}\u{1}"].as_slice().printed(), "[\"\\u003c\u{7f}\\u0001\"]");
        assert_eq!((7.printed(), true.printed()), ("7".to_owned(), "true".to_owned()));
    }

    #[test]
    fn long_values_are_truncated() {
        assert_eq!(json(&["a", "b"]), r#"["a","b"]"#);
        let long = json(&vec!["é"; MAX_PRINTED_BYTES]);
        assert!(long.starts_with(r#"["é","é""#) && long.ends_with("..."));
        assert!(long.len() < MAX_PRINTED_BYTES + 8);
        assert_eq!(cut("é".to_owned()), "é");
        let (long, max) = (cut("é".repeat(MAX_PRINTED_BYTES)), MAX_PRINTED_BYTES + 3);
        assert!(long.ends_with("é...") && (max - 1..=max).contains(&long.len()));
    }
}
