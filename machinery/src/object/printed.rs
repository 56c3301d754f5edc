//! How a value stands in an error: as compact JSON, and no more of it than somebody would read.

use std::io::{Error, ErrorKind, Result, Write};

use serde::Serialize;
use serde_json::Value;

/// How much of a value an error tells, in bytes. An error may be told for each element of a list and print the whole list:
/// without a bound the answer grows with the square of the body. Upstream has none.
pub const MOST_PRINTED_BYTES: usize = 16 * 1024;

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

/// What Go calls the type of a value that it has read from JSON: upstream's errors name it.
#[must_use]
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Takes bytes until there are enough.
struct Kept(Vec<u8>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let room = MOST_PRINTED_BYTES.saturating_sub(self.0.len());
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
        let long = json(&vec!["é"; MOST_PRINTED_BYTES]);
        assert!(long.starts_with(r#"["é","é""#) && long.ends_with("..."));
        assert!(long.len() < MOST_PRINTED_BYTES + 8);
    }
}
