//! Embedded resources: their required kind and version, and access to their metadata.

use portico_machinery::field::{Error, Path};
use portico_machinery::gvk::GroupVersion;
use portico_machinery::{Bounded, Node as Carried, Object, names};
use serde_json::{Map, Value};

use super::at::At;
use super::model::Node;
use super::printed;

/// Validates `apiVersion` and `kind` of the embedded resources in an object.
pub(super) fn validate(object: &Map<String, Value>, root: &Node) -> Vec<Error> {
    let mut errors = Bounded::field_errors();
    each(object, root, &At::root(""), &mut |at, map| type_meta(at, map, &mut errors));
    errors.into_items()
}

/// Validates `apiVersion` and `kind` of the embedded resources in any value at a path. If `is_object`, the value is an object
/// itself, regardless of its schema.
pub(super) fn validate_value(value: &Value, node: &Node, is_object: bool, path: &Path) -> Vec<Error> {
    let mut errors = Bounded::field_errors();
    whole(value, node, is_object, path, &mut |at, map| type_meta(at, map, &mut errors));
    errors.into_items()
}

/// Visits the metadata of embedded resources in any value at a path.
pub(super) fn metadata_of_value(
    value: &Value,
    node: &Node,
    is_object: bool,
    path: &Path,
    visit: &mut dyn FnMut(&Place<'_>, &Object),
) {
    whole(value, node, is_object, path, &mut |at, map| alone(at, map, visit));
}

fn whole(value: &Value, node: &Node, is_object: bool, path: &Path, visit: Visit<'_>) {
    let at = At::root(path.as_str());
    match value {
        Value::Object(map) if is_object => {
            visit(&at, map);
            each(map, node, &at, visit);
        }
        value => inside(value, node, &at, visit),
    }
}

fn type_meta(at: &At<'_>, map: &Map<String, Value>, errors: &mut Bounded<Error>) {
    api_version(map.get("apiVersion"), &at.field("apiVersion"), errors);
    kind(map.get("kind"), &at.field("kind"), errors);
}

fn alone(at: &At<'_>, map: &Map<String, Value>, visit: &mut dyn FnMut(&Place<'_>, &Object)) {
    if let Some(metadata) = map.get("metadata") {
        let mut alone = Object::default();
        alone.put(&["metadata"], Carried(metadata.clone()));
        visit(&|| at.path(), &alone);
    }
}

/// Visits the metadata of the embedded resources in an object. Each visit gets an object that contains only `metadata`, and
/// the path of the resource. The caller applies the rules of ObjectMeta.
pub(super) fn metadata(object: &Map<String, Value>, root: &Node, visit: &mut dyn FnMut(&Place<'_>, &Object)) {
    each(object, root, &At::root(""), &mut |at, map| alone(at, map, visit));
}

fn api_version(value: Option<&Value>, at: &At<'_>, errors: &mut Bounded<Error>) {
    let Some(text) = text(value, at, errors) else { return };
    if text.parse::<GroupVersion>().is_err() {
        let detail = || format!("unexpected GroupVersion string: {text}");
        errors.push_with(|| Error::invalid(&at.path(), text, &detail()));
    }
}

fn kind(value: Option<&Value>, at: &At<'_>, errors: &mut Bounded<Error>) {
    let Some(text) = text(value, at, errors) else { return };
    let diagnostics = names::dns1035_label(&text.to_lowercase());
    if !diagnostics.is_empty() {
        let detail = format!("may have mixed case, but should otherwise match: {}", diagnostics.join(","));
        errors.push_with(|| Error::invalid(&at.path(), text, &detail));
    }
}

/// Returns a required non-empty string.
fn text<'v>(value: Option<&'v Value>, at: &At<'_>, errors: &mut Bounded<Error>) -> Option<&'v str> {
    if let Some(Value::String(text)) = value
        && !text.is_empty()
    {
        return Some(text);
    }
    errors.push_with(|| match value {
        None => Error::required(&at.path(), ""),
        Some(Value::String(_)) => Error::invalid(&at.path(), "", "must not be empty"),
        Some(other) => Error::invalid_printed(&at.path(), &printed::value(other), "must be a string"),
    });
    None
}

/// Path of an embedded resource, formatted only when it is needed.
pub type Place<'p> = dyn Fn() -> Path + 'p;

type Visit<'f> = &'f mut dyn FnMut(&At<'_>, &Map<String, Value>);

/// Visits the embedded resources in a map.
fn each(map: &Map<String, Value>, node: &Node, at: &At<'_>, visit: Visit<'_>) {
    for (key, value) in map {
        let named = node.property(key);
        let Some(below) = named.or(node.additional.schema()).filter(|n| n.marks.embedded) else { continue };
        let at = if named.is_some() { at.field(key) } else { at.key(key) };
        inside(value, below, &at, visit);
    }
}

fn inside(value: &Value, node: &Node, at: &At<'_>, visit: Visit<'_>) {
    match (value, &node.items) {
        (Value::Object(map), _) => {
            if node.embedded {
                visit(at, map);
            }
            each(map, node, at, visit);
        }
        (Value::Array(list), Some(items)) => {
            for (index, item) in list.iter().enumerate() {
                inside(item, items, &at.index(index), visit);
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
    fn embedded_resources_have_a_kind_and_a_version() {
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
            seen.push((path().to_string(), alone.name().to_owned()));
        });
        assert_eq!(seen, [("e".to_owned(), "x".to_owned())]);
    }
}
