//! Sorting of keys. Maps that are already sorted are not rebuilt, because that costs as much as creating them.

use serde_json::{Map, Value};

/// Sorts the keys of a value at all levels.
pub fn sort_keys(value: &mut Value) {
    match value {
        Value::Object(map) => sort_map(map),
        Value::Array(list) => list.iter_mut().for_each(sort_keys),
        _ => {}
    }
}

pub(super) fn sort_map(map: &mut Map<String, Value>) {
    if !map.keys().is_sorted() {
        map.sort_keys();
    }
    map.values_mut().for_each(sort_keys);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_put_in_order_at_every_depth() {
        let mut value: Value =
            serde_json::from_str(r#"{"b":[{"d":1,"c":2}],"a":{"f":{"h":3,"g":4}}}"#).unwrap();
        sort_keys(&mut value);
        let want = r#"{"a":{"f":{"g":4,"h":3}},"b":[{"c":2,"d":1}]}"#;
        assert_eq!(value.to_string(), want);
        sort_keys(&mut value);
        assert_eq!(value.to_string(), want);
    }
}
