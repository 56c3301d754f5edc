//! Conversion of values to JSON (cel-go's conversion to `structpb.Value`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map as JsonMap, Number, Value as Json};

use super::{Map, Steps, Value, print_double};
use crate::error::EvalError;

/// Levels of a value that an expression converts to an object or a patch.
///
/// Limit (Expressions): the expression fails.
const MAX_DEPTH: usize = 256;
/// Larger integers are written as strings, because JSON readers may lose precision.
const MAX_INTEGER: u64 = 1 << 53;
/// Maximum number of items, in addition to the free ones of each evaluation.
const MAX_ITEMS: u64 = 100_000;
/// Bytes of strings that count as one item.
const ITEM_BYTES: usize = 32;

/// Converts values to JSON, with a limit on the total size.
#[derive(Debug)]
pub struct JsonWriter {
    steps: Steps,
}

impl JsonWriter {
    /// Returns a writer for about 100,000 items or 3 MiB of strings in all values together.
    #[must_use]
    pub fn new() -> Self {
        Self { steps: Steps::new(MAX_ITEMS) }
    }

    /// Converts a value to JSON.
    ///
    /// # Errors
    /// The value contains a value of a library, an optional or a key that is not a string, or is nested too deep;
    /// [`EvalError::Budget`] if it exceeds the limit.
    pub fn write(&self, value: &Value<'_>) -> Result<Json, EvalError> {
        self.steps.take_items(1)?;
        write(value, MAX_DEPTH, &self.steps)
    }
}

impl Default for JsonWriter {
    fn default() -> Self {
        Self::new()
    }
}

/// Converts one value to JSON.
///
/// # Errors
/// See [`JsonWriter::write`].
pub fn to_json(value: &Value<'_>) -> Result<Json, EvalError> {
    JsonWriter::new().write(value)
}

fn write(value: &Value<'_>, depth: usize, steps: &Steps) -> Result<Json, EvalError> {
    let depth = depth.checked_sub(1).ok_or_else(|| EvalError::new("a value is nested too deep for JSON"))?;
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(number) if number.unsigned_abs() > MAX_INTEGER => Json::String(number.to_string()),
        Value::Int(number) => Json::from(*number),
        Value::Uint(number) if *number > MAX_INTEGER => Json::String(number.to_string()),
        Value::Uint(number) => Json::from(*number),
        Value::Double(number) => match Number::from_f64(*number) {
            Some(number) => Json::Number(number),
            None => Json::String(print_double(*number)),
        },
        Value::String(text) => {
            steps.take_items(text.len() / ITEM_BYTES)?;
            Json::String(text.to_string())
        }
        Value::Bytes(bytes) => {
            steps.take_items(bytes.len() / ITEM_BYTES)?;
            Json::String(STANDARD.encode(bytes))
        }
        Value::List(list) => {
            steps.take_items(list.len())?;
            let items = list.iter().map(|item| write(&item?, depth, steps));
            Json::Array(items.collect::<Result<_, EvalError>>()?)
        }
        Value::Map(map) => Json::Object(members(map, depth, steps)?),
        Value::Timestamp(time) => Json::String(time.to_string()),
        Value::Duration(time) => Json::String(time.to_string()),
        Value::Type(ty) => Json::String(ty.name().to_owned()),
        Value::Optional(_) | Value::Opaque(_) => {
            return Err(EvalError::new(format!("type '{}' is no JSON", value.type_of())));
        }
    })
}

fn members(map: &Map<'_>, depth: usize, steps: &Steps) -> Result<JsonMap<String, Json>, EvalError> {
    let member = |entry: Result<(Value<'_>, Value<'_>), EvalError>| match entry? {
        (Value::String(name), value) => {
            steps.take_items(name.len() / ITEM_BYTES)?;
            Ok((name.to_string(), write(&value, depth, steps)?))
        }
        (other, _) => Err(EvalError::new(format!("a key of type '{}' is no JSON", other.type_of()))),
    };
    steps.take_items(map.len())?;
    map.iter().map(member).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;

    #[test]
    fn literals_are_converted_to_json() {
        let environment = Environment::builder().build();
        let table = [
            ("[1, 2.5, null, true, 'a']", r#"[1,2.5,null,true,"a"]"#),
            ("{'a': {'b': [b'x']}}", r#"{"a":{"b":["eA=="]}}"#),
            ("9007199254740993", r#""9007199254740993""#),
            ("duration('90s')", r#""90s""#),
            ("timestamp('2026-01-02T03:04:05Z')", r#""2026-01-02T03:04:05Z""#),
        ];
        for (expression, json) in table {
            let value = environment.compile(expression).unwrap().run(&[]).unwrap();
            assert_eq!(to_json(&value).unwrap().to_string(), json, "{expression}");
        }
        let shared = format!("[[1, 2]]{}", ".map(x, [x, x])".repeat(30));
        let shared = environment.compile(&shared).unwrap().run(&[]).unwrap();
        assert!(matches!(to_json(&shared), Err(EvalError::Budget)));
        let numbers = environment.compile("{1: 2}").unwrap().run(&[]).unwrap();
        assert!(to_json(&numbers).is_err());
    }
}
