//! How errors print values: as Go does.

use portico_machinery::MAX_PRINTED_BYTES;
use portico_machinery::object::{Float, cut};
use serde_json::Value;

use crate::normalise;

/// A value as a field error shows it: strings quoted, numbers bare, the rest as compact JSON. Of a long one the beginning.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => Float(float).to_string(),
            _ => number.to_string(),
        },
        Value::String(text) => cut(format!("{:?}", text.get(..upto(text)).unwrap_or(text))),
        other => json(other),
    }
}

/// A value as compact JSON, keys sorted; of a long one the beginning.
fn json(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    normalise::whole_value(&mut sorted);
    let mut object = portico_machinery::Object::default();
    object.put(&["v"], portico_machinery::Node(sorted));
    object.at(&["v"]).printed()
}

/// How much of a text is looked at.
fn upto(text: &str) -> usize {
    text.floor_char_boundary(MAX_PRINTED_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_as_go_prints_them() {
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
        for (held, want) in rows {
            assert_eq!(value(&held), want);
        }
    }
}
