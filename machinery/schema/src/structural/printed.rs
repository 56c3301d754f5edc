//! Formatting of values in errors, like Go.

use portico_machinery::MAX_PRINTED_BYTES;
use portico_machinery::object::{Float, cut};
use serde_json::Value;

use crate::normalize;

/// Formats a value for a field error: strings quoted, numbers bare, the rest as compact JSON. Long values are truncated.
pub(super) fn print_value(value: &Value) -> String {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => Float(float).to_string(),
            _ => number.to_string(),
        },
        Value::String(text) => cut(format!("{:?}", text.get(..printed_length(text)).unwrap_or(text))),
        other => json(other),
    }
}

/// Formats a value as compact JSON with sorted keys. Long values are truncated.
fn json(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    normalize::value_floats_to_integers(&mut sorted);
    let mut object = portico_machinery::Object::default();
    object.put(&["v"], portico_machinery::Node(sorted));
    object.at(&["v"]).printed()
}

/// Returns the length of the printed part of a text.
fn printed_length(text: &str) -> usize {
    text.floor_char_boundary(MAX_PRINTED_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printed_like_go() {
        let rows = [
            (Value::from(4.5), "4.5"),
            (Value::from(1e21), "1e+21"),
            (Value::from(1e-7), "1e-07"),
            (Value::from(1_234_567.5), "1.2345675e+06"),
            (Value::from(7), "7"),
            (Value::from("a\"b"), r#""a\"b""#),
            (Value::Null, "null"),
            (serde_json::json!({"b": [1.0, 1.5], "a": true}), r#"{"a":true,"b":[1,1.5]}"#),
        ];
        for (value, want) in rows {
            assert_eq!(print_value(&value), want);
        }
    }
}
