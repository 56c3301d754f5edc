//! Sets and maps that are written as lists: what may not stand in them twice.

use std::borrow::Cow;
use std::collections::HashMap;

use portico_machinery::field::{Error, Path};
use portico_machinery::status::MOST_FIELD_ERRORS;
use serde_json::{Map, Value};

use super::model::Node;
use super::printed;
use crate::model::ListType;
use crate::normalise;

/// Which elements are duplicates, each value once, at the place of its second occurrence.
pub(super) fn validate(object: &Map<String, Value>, root: &Node) -> Vec<Error> {
    let mut errors = Vec::new();
    map(object, root, &Path::root(), &mut errors);
    errors
}

fn map(map: &Map<String, Value>, node: &Node, path: &Path, errors: &mut Vec<Error>) {
    for (key, held) in map {
        // A named field is looked at by its own schema, and again by that of the values of the map, if there is one.
        let entries = node.additional.schema().map(|below| (below, false));
        let named = node.property(key).map(|below| (below, true));
        for (below, named) in entries.into_iter().chain(named).filter(|(below, _)| below.marks.unique_lists) {
            let path = if named { path.child(key) } else { path.key(key) };
            value(held, below, &path, errors);
        }
    }
}

fn value(value: &Value, node: &Node, path: &Path, errors: &mut Vec<Error>) {
    match value {
        Value::Object(fields) => map(fields, node, path, errors),
        Value::Array(items) => list(items, node, path, errors),
        _ => {}
    }
}

fn list(items: &[Value], node: &Node, path: &Path, errors: &mut Vec<Error>) {
    let mut duplicates = Duplicates { path, errors };
    match node.list_type {
        Some(ListType::Set) => duplicates.of(items.iter().map(comparable), |item| printed::value(item)),
        Some(ListType::Map) => duplicates.of_keyed(items, &node.list_keys),
        Some(ListType::Atomic) | None => {}
    }
    for (at, item) in items.iter().enumerate() {
        if let Some(below) = node.items.as_ref().filter(|below| below.marks.unique_lists) {
            value(item, below, &path.index(at), errors);
        }
    }
}

/// What tells elements apart: scalars by type and value, the rest by their JSON, in which a float may look whole.
fn comparable(item: &Value) -> Cow<'_, Value> {
    let mut item = Cow::Borrowed(item);
    if item.is_array() || item.is_object() {
        normalise::whole_value(item.to_mut());
    }
    item
}

struct Duplicates<'a> {
    path: &'a Path,
    errors: &'a mut Vec<Error>,
}

impl Duplicates<'_> {
    /// Says what stands there twice.
    fn of<K: Eq + std::hash::Hash>(&mut self, keys: impl Iterator<Item = K>, shown: impl Fn(&K) -> String) {
        let mut seen: HashMap<K, bool> = HashMap::new();
        for (at, key) in keys.enumerate() {
            if self.errors.len() > MOST_FIELD_ERRORS {
                return;
            }
            match seen.get_mut(&key) {
                None => {
                    seen.insert(key, false);
                }
                Some(told) if !*told => {
                    *told = true;
                    let mut error = Error::duplicate(&self.path.index(at), "");
                    error.body = format!("Duplicate value: {}", shown(&key));
                    self.errors.push(error);
                }
                Some(_) => {}
            }
        }
    }

    fn of_keyed(&mut self, items: &[Value], names: &[Box<str>]) {
        if let Some(at) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
            let detail = "must be an object for an array of list-type map";
            self.errors.push(Error::invalid_printed(
                &self.path.index(at),
                &printed::value(&items[at]),
                detail,
            ));
            return;
        }
        // The keys that an element has; those that it lacks are equal to each other.
        let keys = items.iter().map(|item| {
            let several = names.len() > 1;
            let present = names.iter().filter_map(|name| {
                let mut value = comparable(item.get(&**name)?);
                if several && value.is_f64() {
                    normalise::whole_value(value.to_mut());
                }
                Some((&**name, value))
            });
            present.collect::<Vec<_>>()
        });
        self.of(keys, |keys| {
            let map: Map<String, Value> =
                keys.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into_owned())).collect();
            printed::value(&Value::Object(map))
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::structural::Structural;

    #[test]
    fn duplicates_are_told_once_at_their_second_place() {
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
