//! Lists that are sets or maps: detection of duplicate elements.

mod distinct;

use std::collections::HashMap;
use std::hash::Hash;

use portico_machinery::Bounded;
use portico_machinery::field::Error;
use serde_json::{Map, Value};

use super::at::At;
use super::model::Node;
use super::printed;
use crate::model::ListType;
use distinct::Distinct;

/// Reports the duplicate elements of an object, each value once, at its second occurrence.
pub(super) fn validate(object: &Map<String, Value>, root: &Node) -> Vec<Error> {
    let mut errors = Bounded::field_errors();
    map(object, root, &At::root(""), &mut errors);
    errors.into_items()
}

fn map(map: &Map<String, Value>, node: &Node, at: &At<'_>, errors: &mut Bounded<Error>) {
    for (key, held) in map {
        // A named field is checked by its own schema and, if there is one, by the schema of the map's values.
        let entries = node.additional.schema().map(|below| (below, at.key(key)));
        let named = node.property(key).map(|below| (below, at.field(key)));
        for (below, at) in entries.into_iter().chain(named).filter(|(below, _)| below.marks.unique_lists) {
            value(held, below, &at, errors);
        }
    }
}

fn value(value: &Value, node: &Node, at: &At<'_>, errors: &mut Bounded<Error>) {
    match value {
        Value::Object(fields) => map(fields, node, at, errors),
        Value::Array(items) => list(items, node, at, errors),
        _ => {}
    }
}

fn list(items: &[Value], node: &Node, at: &At<'_>, errors: &mut Bounded<Error>) {
    let mut duplicates = Duplicates { at, errors };
    match node.list_type {
        Some(ListType::Set) => {
            duplicates.of(items.iter().map(Distinct::of_set), |item| printed::value(item.value()));
        }
        Some(ListType::Map) => duplicates.of_keyed(items, &node.list_keys),
        Some(ListType::Atomic) | None => {}
    }
    let Some(below) = node.items.as_ref().filter(|below| below.marks.unique_lists) else { return };
    for (index, item) in items.iter().enumerate() {
        value(item, below, &at.index(index), errors);
    }
}

struct Duplicates<'a> {
    at: &'a At<'a>,
    errors: &'a mut Bounded<Error>,
}

impl Duplicates<'_> {
    /// Reports duplicate keys.
    fn of<K: Eq + Hash>(&mut self, keys: impl Iterator<Item = K>, shown: impl Fn(&K) -> String) {
        let mut seen: HashMap<K, bool> = HashMap::new();
        for (at, key) in keys.enumerate() {
            if self.errors.is_full() {
                return;
            }
            match seen.get_mut(&key) {
                None => {
                    seen.insert(key, false);
                }
                Some(reported) if !*reported => {
                    *reported = true;
                    let path = || self.at.index(at).path();
                    self.errors.push_with(|| Error::duplicate_printed(&path(), Some(&shown(&key))));
                }
                Some(_) => {}
            }
        }
    }

    fn of_keyed(&mut self, items: &[Value], names: &[Box<str>]) {
        if let Some(at) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
            let (path, shown) = (self.at.index(at).path(), printed::value(&items[at]));
            let detail = "must be an object for an array of list-type map";
            self.errors.push_with(|| Error::invalid_printed(&path, &shown, detail));
            return;
        }
        // Present keys only: missing keys are equal to each other.
        let keys = items.iter().map(|item| {
            let present = names.iter().filter_map(|name| Some((&**name, item.get(&**name)?)));
            let of_several = names.len() > 1;
            present.map(|(name, value)| (name, Distinct::of_key(value, of_several))).collect::<Vec<_>>()
        });
        self.of(keys, |keys| {
            let held = keys.iter().map(|(name, key)| ((*name).to_owned(), key.value().clone()));
            printed::value(&Value::Object(held.collect()))
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::structural::Structural;

    #[test]
    fn duplicates_are_reported_once_at_their_second_place() {
        let keyed = |keys: &[&str]| {
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
                "items": {"type": "object", "properties": {"k": {"type": "string"}, "p": {"type": "integer"}}}})
        };
        let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
        let schema = Structural::compile(&json!({"type": "object", "properties": {
            "s": set,
            "o": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object", "x-kubernetes-map-type": "atomic"}},
            "m": keyed(&["k"]),
            "m2": keyed(&["k", "p"]),
            "e": {"type": "object", "additionalProperties": set},
            "l": {"type": "array", "items": {"type": "object", "properties": {"s": set}}},
        }}))
        .unwrap();
        let rows = [
            (
                json!({"s": ["a", "b", "a", "a", "b"]}),
                vec![r#"s[2]: Duplicate value: "a""#, r#"s[4]: Duplicate value: "b""#],
            ),
            (json!({"s": ["1", 1, true, "true", null]}), vec![]),
            (
                json!({"o": [{"b": 1, "a": 2}, {"a": 2, "b": 1}]}),
                vec![r#"o[1]: Duplicate value: {"a":2,"b":1}"#],
            ),
            (json!({"m": [{"k": "a", "v": 1}, {"k": "a"}]}), vec![r#"m[1]: Duplicate value: {"k":"a"}"#]),
            (json!({"m": [{}, null]}), vec![r"m[1]: Duplicate value: {}"]),
            (
                json!({"m": [{"k": "a"}, "x"]}),
                vec![r#"m[1]: Invalid value: "x": must be an object for an array of list-type map"#],
            ),
            (
                json!({"m2": [{"k": "a"}, {"k": "a", "p": 1}, {"p": 1, "k": "a"}]}),
                vec![r#"m2[2]: Duplicate value: {"k":"a","p":1}"#],
            ),
            (json!({"e": {"x.y": ["a", "a"]}}), vec![r#"e[x.y][1]: Duplicate value: "a""#]),
            (json!({"l": [{"s": ["a"]}, {"s": ["a", "a"]}]}), vec![r#"l[1].s[1]: Duplicate value: "a""#]),
        ];
        for (object, want) in rows {
            let errors = validate(object.as_object().unwrap(), schema.root());
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), want, "{object}");
        }
    }
}
