//! Lists that are sets or maps: detection of duplicate elements.

mod comparable;

use std::collections::HashMap;
use std::hash::Hash;

use portico_machinery::Bounded;
use portico_machinery::field::Error;
use serde_json::{Map, Value};

use super::location::Location;
use super::model::SchemaNode;
use super::printed;
use crate::model::ListType;
use comparable::ComparableValue;

/// Reports the duplicate elements of an object, each value once, at its second occurrence.
pub(super) fn validate(object: &Map<String, Value>, root: &SchemaNode) -> Vec<Error> {
    let mut errors = Bounded::field_errors();
    map(object, root, &Location::root(""), &mut errors);
    errors.into_items()
}

fn map(map: &Map<String, Value>, node: &SchemaNode, location: &Location<'_>, errors: &mut Bounded<Error>) {
    for (key, entry) in map {
        // A named field is checked by its own schema and, if there is one, by the schema of the map's values.
        let entries = node.additional.schema().map(|child| (child, location.key(key)));
        let named = node.property(key).map(|child| (child, location.field(key)));
        for (child, at) in
            entries.into_iter().chain(named).filter(|(child, _)| child.subtree_flags.unique_lists)
        {
            value(entry, child, &at, errors);
        }
    }
}

fn value(value: &Value, node: &SchemaNode, location: &Location<'_>, errors: &mut Bounded<Error>) {
    match value {
        Value::Object(fields) => map(fields, node, location, errors),
        Value::Array(items) => list(items, node, location, errors),
        _ => {}
    }
}

fn list(items: &[Value], node: &SchemaNode, location: &Location<'_>, errors: &mut Bounded<Error>) {
    let mut duplicates = DuplicateReporter { location, errors };
    match node.list_type {
        Some(ListType::Set) => {
            duplicates
                .report(items.iter().map(ComparableValue::of_set), |item| printed::print_value(item.value()));
        }
        Some(ListType::Map) => duplicates.report_keyed(items, &node.list_keys),
        Some(ListType::Atomic) | None => {}
    }
    let Some(child) = node.items.as_ref().filter(|child| child.subtree_flags.unique_lists) else { return };
    for (index, item) in items.iter().enumerate() {
        value(item, child, &location.index(index), errors);
    }
}

struct DuplicateReporter<'a> {
    location: &'a Location<'a>,
    errors: &'a mut Bounded<Error>,
}

impl DuplicateReporter<'_> {
    /// Reports duplicate keys.
    fn report<K: Eq + Hash>(&mut self, keys: impl Iterator<Item = K>, print_key: impl Fn(&K) -> String) {
        let mut seen: HashMap<K, bool> = HashMap::new();
        for (index, key) in keys.enumerate() {
            if self.errors.is_full() {
                return;
            }
            match seen.get_mut(&key) {
                None => {
                    seen.insert(key, false);
                }
                Some(reported) if !*reported => {
                    *reported = true;
                    let path = || self.location.index(index).path();
                    self.errors.push_with(|| Error::duplicate_printed(&path(), Some(&print_key(&key))));
                }
                Some(_) => {}
            }
        }
    }

    fn report_keyed(&mut self, items: &[Value], names: &[Box<str>]) {
        if let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
            let (path, printed) = (self.location.index(index).path(), printed::print_value(&items[index]));
            let detail = "must be an object for an array of list-type map";
            self.errors.push_with(|| Error::invalid_printed(&path, &printed, detail));
            return;
        }
        // Present keys only: missing keys are equal to each other.
        let keys = items.iter().map(|item| {
            let present = names.iter().filter_map(|name| Some((&**name, item.get(&**name)?)));
            let of_several = names.len() > 1;
            present
                .map(|(name, value)| (name, ComparableValue::of_key(value, of_several)))
                .collect::<Vec<_>>()
        });
        self.report(keys, |keys| {
            let members = keys.iter().map(|(name, key)| ((*name).to_owned(), key.value().clone()));
            printed::print_value(&Value::Object(members.collect()))
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::structural::Structural;

    #[test]
    fn duplicates_are_reported_once_at_their_second_occurrence() {
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
