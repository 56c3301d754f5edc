//! What every embedded resource must say: which kind it is, in which version; and where their metadata stand.

use portico_machinery::field::{Error, Path};
use portico_machinery::gvk::GroupVersion;
use portico_machinery::{Node as Carried, Object, names};
use serde_json::{Map, Value};

use super::model::Node;
use super::printed;

/// What is wrong with `apiVersion` and `kind` of the embedded resources of an object.
pub(super) fn validate(object: &Map<String, Value>, root: &Node) -> Vec<Error> {
    let mut errors = Vec::new();
    each(object, root, &Path::root(), &mut |path, map| type_meta(path, map, &mut errors));
    errors
}

/// As [`validate`] of any value at a path; it may be an object itself, whatever its schema says.
pub(super) fn validate_value(value: &Value, node: &Node, is_object: bool, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    whole(value, node, is_object, path, &mut |path, map| type_meta(path, map, &mut errors));
    errors
}

/// As [`metadata`] of any value at a path.
pub(super) fn metadata_of_value(
    value: &Value,
    node: &Node,
    is_object: bool,
    path: &Path,
    visit: &mut dyn FnMut(&Path, &Object),
) {
    whole(value, node, is_object, path, &mut |path, map| alone(path, map, visit));
}

fn whole(value: &Value, node: &Node, is_object: bool, path: &Path, visit: Visit<'_>) {
    match value {
        Value::Object(map) if is_object => {
            visit(path, map);
            each(map, node, path, visit);
        }
        value => inside(value, node, path, visit),
    }
}

fn type_meta(path: &Path, map: &Map<String, Value>, errors: &mut Vec<Error>) {
    api_version(map.get("apiVersion"), &path.child("apiVersion"), errors);
    kind(map.get("kind"), &path.child("kind"), errors);
}

fn alone(path: &Path, map: &Map<String, Value>, visit: &mut dyn FnMut(&Path, &Object)) {
    if let Some(metadata) = map.get("metadata") {
        let mut alone = Object::default();
        alone.put(&["metadata"], Carried(metadata.clone()));
        visit(path, &alone);
    }
}

/// The metadata of the embedded resources of an object: each as an object that holds nothing else, with the path of the
/// resource. The rules of ObjectMeta are the caller's.
pub(super) fn metadata(object: &Map<String, Value>, root: &Node, visit: &mut dyn FnMut(&Path, &Object)) {
    each(object, root, &Path::root(), &mut |path, map| alone(path, map, visit));
}

fn api_version(value: Option<&Value>, path: &Path, errors: &mut Vec<Error>) {
    let Some(text) = text(value, path, errors) else { return };
    if text.parse::<GroupVersion>().is_err() {
        errors.push(Error::invalid(path, text, &format!("unexpected GroupVersion string: {text}")));
    }
}

fn kind(value: Option<&Value>, path: &Path, errors: &mut Vec<Error>) {
    let Some(text) = text(value, path, errors) else { return };
    let complaints = names::dns1035_label(&text.to_lowercase());
    if !complaints.is_empty() {
        let detail = format!("may have mixed case, but should otherwise match: {}", complaints.join(","));
        errors.push(Error::invalid(path, text, &detail));
    }
}

/// The string that must be there and not be empty.
fn text<'v>(value: Option<&'v Value>, path: &Path, errors: &mut Vec<Error>) -> Option<&'v str> {
    let error = match value {
        None => Error::required(path, ""),
        Some(Value::String(text)) if text.is_empty() => Error::invalid(path, "", "must not be empty"),
        Some(Value::String(text)) => return Some(text),
        Some(other) => Error::invalid_printed(path, &printed::value(other), "must be a string"),
    };
    errors.push(error);
    None
}

type Visit<'f> = &'f mut dyn FnMut(&Path, &Map<String, Value>);

/// Visits the embedded resources in a map.
fn each(map: &Map<String, Value>, node: &Node, path: &Path, visit: Visit<'_>) {
    for (key, value) in map {
        let named = node.property(key);
        let Some(below) = named.or(node.additional.schema()).filter(|n| n.marks.embedded) else { continue };
        let path = if named.is_some() { path.child(key) } else { path.key(key) };
        inside(value, below, &path, visit);
    }
}

fn inside(value: &Value, node: &Node, path: &Path, visit: Visit<'_>) {
    match (value, &node.items) {
        (Value::Object(map), _) => {
            if node.embedded {
                visit(path, map);
            }
            each(map, node, path, visit);
        }
        (Value::Array(list), Some(items)) => {
            for (at, item) in list.iter().enumerate() {
                inside(item, items, &path.index(at), visit);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::structural::Structural;

    #[test]
    fn embedded_resources_say_what_they_are() {
        let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
        let schema = Structural::compile(&json!({"type": "object", "properties": {
            "e": embedded,
            "l": {"type": "array", "items": embedded},
            "m": {"type": "object", "additionalProperties": embedded},
        }}))
        .unwrap();
        let rows = [
            (json!({"e": {"apiVersion": "v1", "kind": "Pod"}}), vec![]),
            (json!({"e": {}}), vec!["e.apiVersion: Required value", "e.kind: Required value"]),
            (
                json!({"l": [{"apiVersion": "a/b/c", "kind": ""}]}),
                vec![
                    r#"l[0].apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#,
                    r#"l[0].kind: Invalid value: "": must not be empty"#,
                ],
            ),
            (
                json!({"m": {"k": {"apiVersion": 5, "kind": "Pod"}}}),
                vec!["m[k].apiVersion: Invalid value: 5: must be a string"],
            ),
        ];
        for (object, want) in rows {
            let errors = validate(object.as_object().unwrap(), schema.root());
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), want, "{object}");
        }
        let object = json!({"e": {"kind": "B_ad", "apiVersion": "v1", "metadata": {"name": "x"}}});
        let errors = validate(object.as_object().unwrap(), schema.root());
        let start = r#"e.kind: Invalid value: "B_ad": may have mixed case, but should otherwise match: a DNS-1035 label"#;
        assert!(errors[0].to_string().starts_with(start), "{}", errors[0]);
        let mut seen = Vec::new();
        metadata(object.as_object().unwrap(), schema.root(), &mut |path, alone| {
            seen.push((path.to_string(), alone.name().to_owned()));
        });
        assert_eq!(seen, [("e".to_owned(), "x".to_owned())]);
    }
}
