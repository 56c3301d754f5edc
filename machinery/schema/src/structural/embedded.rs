//! Embedded resources: their required kind and version, and access to their metadata.

use portico_machinery::field::{Error, Path};
use portico_machinery::gvk::GroupVersion;
use portico_machinery::{Bounded, Node as ObjectNode, Object, names};
use serde_json::{Map, Value};

use super::location::Location;
use super::model::SchemaNode;
use super::printed;

/// Validates `apiVersion` and `kind` of the embedded resources in an object.
pub(super) fn validate(object: &Map<String, Value>, root: &SchemaNode) -> Vec<Error> {
    let mut errors = Bounded::field_errors();
    visit_map(object, root, &Location::root(""), &mut |location, map| type_meta(location, map, &mut errors));
    errors.into_items()
}

/// Validates `apiVersion` and `kind` of the embedded resources in any value at a path. If `is_object`, the value is an object
/// itself, regardless of its schema.
pub(super) fn validate_value(value: &Value, node: &SchemaNode, is_object: bool, path: &Path) -> Vec<Error> {
    let mut errors = Bounded::field_errors();
    visit_root(value, node, is_object, path, &mut |location, map| type_meta(location, map, &mut errors));
    errors.into_items()
}

/// Visits the metadata of embedded resources in any value at a path.
pub(super) fn visit_embedded_metadata_of_value(
    value: &Value,
    node: &SchemaNode,
    is_object: bool,
    path: &Path,
    visit: &mut dyn FnMut(&LazyPath<'_>, &Object),
) {
    visit_root(value, node, is_object, path, &mut |location, map| visit_metadata(location, map, visit));
}

fn visit_root(value: &Value, node: &SchemaNode, is_object: bool, path: &Path, visit: Visit<'_>) {
    let location = Location::root(path.as_str());
    match value {
        Value::Object(map) if is_object => {
            visit(&location, map);
            visit_map(map, node, &location, visit);
        }
        value => visit_value(value, node, &location, visit),
    }
}

fn type_meta(location: &Location<'_>, map: &Map<String, Value>, errors: &mut Bounded<Error>) {
    api_version(map.get("apiVersion"), &location.field("apiVersion"), errors);
    kind(map.get("kind"), &location.field("kind"), errors);
}

fn visit_metadata(
    location: &Location<'_>,
    map: &Map<String, Value>,
    visit: &mut dyn FnMut(&LazyPath<'_>, &Object),
) {
    if let Some(metadata) = map.get("metadata") {
        let mut metadata_object = Object::default();
        metadata_object.put(&["metadata"], ObjectNode(metadata.clone()));
        visit(&|| location.path(), &metadata_object);
    }
}

/// Visits the metadata of the embedded resources in an object. Each visit gets an object that contains only `metadata`, and
/// the path of the resource. The caller applies the rules of ObjectMeta.
pub(super) fn visit_embedded_metadata(
    object: &Map<String, Value>,
    root: &SchemaNode,
    visit: &mut dyn FnMut(&LazyPath<'_>, &Object),
) {
    visit_map(object, root, &Location::root(""), &mut |location, map| visit_metadata(location, map, visit));
}

fn api_version(value: Option<&Value>, location: &Location<'_>, errors: &mut Bounded<Error>) {
    let Some(text) = required_text(value, location, errors) else { return };
    if text.parse::<GroupVersion>().is_err() {
        let detail = || format!("unexpected GroupVersion string: {text}");
        errors.push_with(|| Error::invalid(&location.path(), text, &detail()));
    }
}

fn kind(value: Option<&Value>, location: &Location<'_>, errors: &mut Bounded<Error>) {
    let Some(text) = required_text(value, location, errors) else { return };
    let diagnostics = names::dns1035_label(&text.to_lowercase());
    if !diagnostics.is_empty() {
        let detail = format!("may have mixed case, but should otherwise match: {}", diagnostics.join(","));
        errors.push_with(|| Error::invalid(&location.path(), text, &detail));
    }
}

/// Returns a required non-empty string.
fn required_text<'v>(
    value: Option<&'v Value>,
    location: &Location<'_>,
    errors: &mut Bounded<Error>,
) -> Option<&'v str> {
    if let Some(Value::String(text)) = value
        && !text.is_empty()
    {
        return Some(text);
    }
    errors.push_with(|| match value {
        None => Error::required(&location.path(), ""),
        Some(Value::String(_)) => Error::invalid(&location.path(), "", "must not be empty"),
        Some(other) => {
            Error::invalid_printed(&location.path(), &printed::print_value(other), "must be a string")
        }
    });
    None
}

/// Path of an embedded resource, formatted only when it is needed.
pub type LazyPath<'p> = dyn Fn() -> Path + 'p;

type Visit<'f> = &'f mut dyn FnMut(&Location<'_>, &Map<String, Value>);

/// Visits the embedded resources in a map.
fn visit_map(map: &Map<String, Value>, node: &SchemaNode, location: &Location<'_>, visit: Visit<'_>) {
    for (key, value) in map {
        let named = node.property(key);
        let Some(child) = named.or(node.additional.schema()).filter(|n| n.subtree_flags.embedded) else {
            continue;
        };
        let location = if named.is_some() { location.field(key) } else { location.key(key) };
        visit_value(value, child, &location, visit);
    }
}

fn visit_value(value: &Value, node: &SchemaNode, location: &Location<'_>, visit: Visit<'_>) {
    match (value, &node.items) {
        (Value::Object(map), _) => {
            if node.embedded {
                visit(location, map);
            }
            visit_map(map, node, location, visit);
        }
        (Value::Array(list), Some(items)) => {
            for (index, item) in list.iter().enumerate() {
                visit_value(item, items, &location.index(index), visit);
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
        visit_embedded_metadata(object.as_object().unwrap(), schema.root(), &mut |path, metadata| {
            seen.push((path().to_string(), metadata.name().to_owned()));
        });
        assert_eq!(seen, [("e".to_owned(), "x".to_owned())]);
    }
}
