//! JSON parser with Go's numbers, like `sigs.k8s.io/json`: signed 64-bit integers, all other numbers as floats.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Levels of nesting in a request body, in an object with its managed fields, and in the response of a conversion webhook.
///
/// kube-apiserver allows 10,000 levels on stacks that grow. Here, recursion must fit into stacks of 8 MiB, also in builds
/// without optimization.
///
/// Limit (Requests): 400; a conversion fails.
pub const MAX_DEPTH: usize = 500;

/// Maximum levels that are read of a stored object, or of a document that contains one.
pub const MAX_READ_DEPTH: usize = MAX_DEPTH + 28;

/// Parses any value. Integers out of the range of `i64` become floats.
///
/// # Errors
/// Text that is not JSON, or has too many levels.
pub fn value_from_json(bytes: &[u8]) -> serde_json::Result<Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    // The seed counts the levels.
    deserializer.disable_recursion_limit();
    let value = ValueSeed { remaining_levels: MAX_READ_DEPTH }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// True if arrays and objects of JSON nest deeper than `levels`. The JSON need not be valid.
#[must_use]
pub fn is_deeper(json: &[u8], levels: usize) -> bool {
    // Few objects have as many brackets as the limits have levels, and brackets are found faster than levels are counted.
    memchr::memchr2_iter(b'{', b'[', json).nth(levels).is_some() && depth(json) > levels
}

/// Returns the number of levels; brackets in strings do not count.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Seed of a value whose integers above `i64::MAX` become floats.
#[derive(Clone, Copy)]
struct ValueSeed {
    /// Number of further levels that are accepted.
    remaining_levels: usize,
}

impl ValueSeed {
    /// Returns the seed of the values inside an array or object.
    fn child<E: Error>(self) -> Result<Self, E> {
        let remaining_levels =
            self.remaining_levels.checked_sub(1).ok_or_else(|| E::custom("exceeded max depth"))?;
        Ok(Self { remaining_levels })
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed {
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

    #[expect(clippy::cast_precision_loss, reason = "Go also rounds")]
    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or_else(|_| Value::from(number as f64), Value::from))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        // `-0` is an integer, and negative zero is written in this form.
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
        let child = self.child()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(child)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let child = self.child()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            map.insert(key, entries.next_value_seed(child)?);
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
    fn brackets_in_strings_are_not_levels() {
        let json = br#"{"a[[[":[{"\"{{":"\\"},[]],"b":{}}"#;
        assert!(is_deeper(json, 2) && !is_deeper(json, 3));
        assert!(is_deeper(b"{}", 0) && !is_deeper(b"1", 0) && !is_deeper(b"]]", 0));
    }

    #[test]
    fn values_are_read_up_to_the_maximum_depth() {
        let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(value_from_json(nested(MAX_READ_DEPTH).as_bytes()).is_ok());
        for levels in [MAX_READ_DEPTH + 1, 1_000_000] {
            let error = value_from_json(nested(levels).as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("exceeded max depth"), "{error}");
        }
    }

    #[test]
    fn written_values_are_read_back_unchanged() {
        let object =
            Object::from_json(br#"{"n":[9223372036854775808,1e20,0.5,-7],"t":"\u00e9","z":null}"#).unwrap();
        assert_eq!(Object::from_json(&object.to_json()).unwrap(), object);
    }
}
