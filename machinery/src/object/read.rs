//! JSON read with Go's numbers, as `sigs.k8s.io/json` reads them: integers of 64 bits with a sign, all others floats.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads any value; integers beyond 64 bits with a sign become floats.
///
/// # Errors
/// What is no JSON.
pub fn value_from_json(bytes: &[u8]) -> serde_json::Result<Value> {
    Ok(serde_json::from_slice::<GoValue>(bytes)?.0)
}

/// A value whose integers above `i64::MAX` have become floats.
struct GoValue(Value);

impl<'de> Deserialize<'de> for GoValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Values).map(Self)
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    #[expect(clippy::cast_precision_loss, reason = "Go's reader rounds, too")]
    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or_else(|_| Value::from(number as f64), Value::from))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        // `-0` is an integer, and how a negative zero is written.
        if number == 0.0 && number.is_sign_negative() {
            return Ok(0.into());
        }
        Ok(Number::from_f64(number).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(GoValue(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, GoValue(value))) = entries.next_entry::<String, _>()? {
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Object;

    #[test]
    fn integers_beyond_64_bits_with_a_sign_are_floats() {
        let json = br#"{"a":9223372036854775807,"b":9223372036854775808,"c":[18446744073709551615],"d":-9223372036854775809,"e":{"f":1.0}}"#;
        let object = Object::from_json(json).unwrap();
        let map = object.map();
        assert_eq!(map["a"], Value::from(i64::MAX));
        assert_eq!(map["b"], Value::from(9_223_372_036_854_775_808_f64));
        assert_eq!(map["c"][0], Value::from(18_446_744_073_709_551_615_f64));
        assert_eq!(map["d"], Value::from(-9_223_372_036_854_775_809_f64));
        assert!(map["b"].is_f64() && map["c"][0].is_f64() && map["e"]["f"].is_f64());
    }

    #[test]
    fn what_was_written_is_read_back_the_same() {
        let object =
            Object::from_json(br#"{"n":[9223372036854775808,1e20,0.5,-7],"t":"\u00e9","z":null}"#).unwrap();
        assert_eq!(Object::from_json(&object.to_json()).unwrap(), object);
    }
}
