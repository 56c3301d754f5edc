//! How numbers are written: floats as package `encoding/json` of Go writes them, and as steps of `fieldsV1` have them.

use std::io::{Result, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::Formatter;

/// The floats that are written in digits alone; smaller and larger ones have an exponent.
const WRITTEN_OUT: std::ops::Range<f64> = 1e-6..1e21;

/// Compact JSON with Go's numbers.
pub(super) struct GoNumbers {
    /// Digits of the shortest exponent.
    exponent_digits: usize,
}

impl GoNumbers {
    /// As `json.Marshal`: `1e-7`.
    pub(super) const JSON: Self = Self { exponent_digits: 1 };
    /// As `strconv.FormatFloat`, which the JSON library behind `fieldsV1` uses: `1e-07`.
    const STEP: Self = Self { exponent_digits: 2 };
}

impl Formatter for GoNumbers {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> Result<()> {
        if value == 0.0 || WRITTEN_OUT.contains(&value.abs()) {
            return write!(writer, "{value}");
        }
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(("+", exponent), |digits| ("-", digits));
        write!(writer, "{digits}e{sign}{exponent:0>width$}", width = self.exponent_digits)
    }
}

/// A value as compact JSON, with numbers as they stand in steps of `fieldsV1`.
#[must_use]
pub fn step_json(value: &Value) -> String {
    let mut json = Vec::new();
    let mut out = serde_json::Serializer::with_formatter(&mut json, GoNumbers::STEP);
    // Maps with string keys always encode, and a vector takes everything.
    if value.serialize(&mut out).is_err() {
        json.clear();
    }
    String::from_utf8(json).unwrap_or_default()
}
