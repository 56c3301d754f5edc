//! JSON in the format of Go's package `encoding/json`, and of path elements in `fieldsV1`.

use std::io::{Result, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::Formatter;

use super::go::escape_html;

/// Range of floats that are written without an exponent.
const WITHOUT_EXPONENT: std::ops::Range<f64> = 1e-6..1e21;

/// Formatter of compact JSON with Go's numbers and escapes.
struct GoJson {
    /// Minimum digits of an exponent.
    exponent_digits: usize,
    /// True if HTML characters are escaped.
    escape_html: bool,
}

impl GoJson {
    /// Format of `json.Marshal`: `1e-7`, `"\u003c"`.
    const JSON: Self = Self { exponent_digits: 1, escape_html: true };
    /// Format of stored objects, which are sent unchanged: `1e-7`, `"<"`. Escapes would take up to six times the space.
    const OBJECT: Self = Self { exponent_digits: 1, escape_html: false };
    /// Format of `strconv.FormatFloat`, which the JSON library behind `fieldsV1` uses: `1e-07`.
    const STEP: Self = Self { exponent_digits: 2, escape_html: false };
}

impl Formatter for GoJson {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> Result<()> {
        if self.escape_html {
            return writer.write_all(escape_html(fragment).as_bytes());
        }
        writer.write_all(fragment.as_bytes())
    }

    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> Result<()> {
        if value == 0.0 || WITHOUT_EXPONENT.contains(&value.abs()) {
            return write!(writer, "{value}");
        }
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(("+", exponent), |digits| ("-", digits));
        write!(writer, "{digits}e{sign}{exponent:0>width$}", width = self.exponent_digits)
    }
}

/// Encodes a value as compact JSON like Go.
#[must_use]
pub fn to_go_json<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    encode(value, GoJson::JSON)
}

/// Encodes a value as compact JSON with Go's numbers, as objects are stored and sent.
pub(super) fn object_json<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    encode(value, GoJson::OBJECT)
}

fn encode<T: Serialize + ?Sized>(value: &T, format: GoJson) -> Vec<u8> {
    let mut json = Vec::new();
    let mut out = serde_json::Serializer::with_formatter(&mut json, format);
    // Values of an object can always be encoded, and writing to a vector cannot fail.
    if value.serialize(&mut out).is_err() {
        json.clear();
    }
    json
}

/// Encodes a value as compact JSON, with numbers formatted as in path elements of `fieldsV1`.
#[must_use]
pub fn step_json(value: &Value) -> String {
    String::from_utf8(encode(value, GoJson::STEP)).unwrap_or_default()
}
