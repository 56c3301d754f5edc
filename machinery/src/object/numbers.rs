//! How numbers are written: large floats as Go writes them, digits instead of an exponent.

use std::io::{Result, Write};

use serde_json::ser::Formatter;

/// The whole floats that are no integers of 64 bits and have no exponent in Go's JSON.
const WRITTEN_OUT: std::ops::Range<f64> = 9.2e18..1e21;

/// Compact JSON with Go's numbers.
pub(super) struct GoNumbers;

impl Formatter for GoNumbers {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> Result<()> {
        if WRITTEN_OUT.contains(&value.abs()) {
            return write!(writer, "{value}");
        }
        serde_json::ser::CompactFormatter.write_f64(writer, value)
    }
}

#[cfg(test)]
mod tests {
    use crate::Object;

    #[test]
    fn large_floats_are_written_out_and_larger_ones_are_not() {
        let object: Object =
            serde_json::from_str(r#"{"a":18446744073709551616,"b":-1e20,"c":1e21,"d":1.5,"e":4.0,"f":1e18}"#)
                .map(Object::from_map)
                .unwrap();
        let written = String::from_utf8(object.to_json()).unwrap();
        assert!(
            written.starts_with(r#"{"a":18446744073709552000,"b":-100000000000000000000,"c":1e+21,"d":1.5,"#),
            "{written}"
        );
    }
}
