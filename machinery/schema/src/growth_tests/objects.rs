//! Objects and their schemas: naive validation would take the product of both sizes.

use portico_machinery::{GroupVersionKind, JsonPath, Object};
use serde_json::{Value, json};

use super::{Row, assert_linear_time, chain, custom, map, names};
use crate::decode::MAX_STRICT_BYTES;
use crate::{Decoded, Format, Schema};

fn kind() -> GroupVersionKind {
    GroupVersionKind { group: "g".to_owned(), version: "v1".to_owned(), kind: "Kind".to_owned() }
}

fn body(spec: &Value) -> Vec<u8> {
    let object = json!({"apiVersion": "g/v1", "kind": "Kind", "metadata": {"name": "n"}, "spec": spec});
    object.to_string().into_bytes()
}

fn decode(schema: &Schema, body: &[u8], format: Format) -> Decoded {
    schema.decode(body, format, &kind()).unwrap()
}

/// Schema and body that grow together.
type SchemaAndBody = (Schema, Vec<u8>);

fn schemas_and_bodies() -> Vec<Row<SchemaAndBody>> {
    vec![
        ("properties for each element", |n| {
            let items = json!({"type": "object", "properties": map(n, &json!({"type": "string"}))});
            (custom(&json!({"type": "array", "items": items})), body(&vec![json!({"k0": "x"}); n].into()))
        }),
        ("required names for each element", |n| {
            let items = json!({"type": "object", "properties": map(n, &json!({"type": "string"})), "required": names(n)});
            (custom(&json!({"type": "array", "items": items})), body(&vec![json!({}); n].into()))
        }),
        ("allowed texts for each element", |n| {
            let items = json!({"type": "string", "enum": names(n)});
            (custom(&json!({"type": "array", "items": items})), body(&names(n).into()))
        }),
        ("one default for each element", |n| {
            let mut properties = map(n, &json!({"type": "string"}));
            properties.insert("d".to_owned(), json!({"type": "integer", "default": 1}));
            let items = json!({"type": "object", "properties": properties});
            (custom(&json!({"type": "array", "items": items})), body(&vec![json!({}); n].into()))
        }),
        ("unknown fields", |n| {
            (custom(&json!({"type": "object", "properties": {}})), body(&map(n, &json!(1)).into()))
        }),
        ("sets", |n| {
            let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
            let duplicates: Vec<String> = names(n).into_iter().chain(names(n)).collect();
            (custom(&set), body(&duplicates.into()))
        }),
        ("keyed lists", |n| {
            let items = json!({"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]});
            let keyed = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items});
            let elements: Vec<Value> = names(n).into_iter().map(|name| json!({"k": name})).collect();
            (custom(&keyed), body(&elements.into()))
        }),
        ("embedded resources below a long name", |n| {
            let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
            let spec =
                json!({"type": "object", "additionalProperties": {"type": "array", "items": embedded}});
            let element = json!({"metadata": {"name": "x"}});
            (custom(&spec), body(&json!({"k".repeat(100 * n): vec![element; n / 4]})))
        }),
        ("deep fields", |n| {
            let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            (custom(&spec), body(&map(50, &chain(n / 8, json!(1), |inner| json!({"a": inner}))).into()))
        }),
        ("unknown fields and errors below deep fields", |n| {
            let values =
                json!({"type": "object", "properties": {"k0": {"type": "string"}, "k1": {"type": "string"}}});
            let spec = chain(n / 8, values, |inner| json!({"type": "object", "additionalProperties": inner}));
            (custom(&spec), body(&chain(n / 8, map(n, &json!(1)).into(), |inner| json!({"a": inner}))))
        }),
        ("errors below a long name", |n| {
            let spec = json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}});
            (custom(&spec), body(&json!({"k".repeat(100 * n): vec![1; n]})))
        }),
    ]
}

#[test]
fn reading_and_checking_an_object_grows_with_it_and_its_schema() {
    for (name, make) in schemas_and_bodies() {
        let decoded = |n| {
            let (schema, body) = make(n);
            schema.custom().unwrap().check().unwrap();
            let object = decode(&schema, &body, Format::Json).object;
            (schema, body, object)
        };
        assert_linear_time(name, 500, decoded, |(schema, body, object)| {
            drop(decode(schema, body, Format::Json));
            let custom = schema.custom().unwrap();
            drop(custom.validate(object));
            drop(custom.validate_update(object, object));
            drop(custom.validate_lists(object));
            drop(custom.validate_embedded(object));
            custom.visit_embedded_metadata(object, |_, _| {});
        });
    }
}

#[test]
fn yaml_grows_with_its_size() {
    let schema = custom(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let head = "apiVersion: g/v1\nkind: Kind\nmetadata: {name: x}\nspec:\n";
    let texts: [Row<String>; 4] = [
        ("keys", |n| names(n).iter().map(|name| format!("  {name}: x\n")).collect()),
        ("duplicate keys", |n| names(n).iter().map(|name| format!("  {name}: x\n  {name}: y\n")).collect()),
        ("elements", |n| format!("  l:\n{}", "  - x\n".repeat(n))),
        ("one long text", |n| format!("  t: |\n{}", "    some words\n".repeat(n))),
    ];
    for (name, text) in texts {
        let text = |n| format!("{head}{}", text(n)).into_bytes();
        assert_linear_time(name, 500, text, |text| drop(decode(&schema, text, Format::Yaml)));
    }
}

#[test]
fn strict_errors_are_bounded_in_bytes() {
    let key = "k".repeat(1024 * 1024);
    let schema = custom(&json!({"type": "object", "additionalProperties": {"type": "object"}}));
    let unknown = body(&json!({key: map(100, &json!(1))}));
    let strict = decode(&schema, &unknown, Format::Json).strict;
    let bytes: usize = strict.iter().map(String::len).sum();
    assert!(!strict.is_empty() && bytes < 2 * MAX_STRICT_BYTES, "{bytes}");
}

#[test]
fn validation_above_the_step_limit_is_rejected() {
    let branches: Vec<Value> = (0..9_000).map(|at| json!({"maximum": at})).collect();
    let schema = custom(&json!({"type": "array", "items": {"type": "integer", "allOf": branches}}));
    let object = decode(&schema, &body(&vec![0; 5_000].into()), Format::Json).object;
    let began = cpu_time::ThreadTime::now();
    let errors = schema.custom().unwrap().validate(&object);
    assert!(errors[0].to_string().contains("takes more than 4000000 steps"), "{}", errors[0]);
    assert!(began.elapsed().as_secs() < 20);
}

#[test]
fn json_paths_check_limits_before_they_allocate() {
    let path = JsonPath::parse(".spec.t.*").unwrap();
    let object = |n: usize| Object::from_json(&body(&json!({"t": "x".repeat(n)}))).unwrap();
    let (short, long) = (object(50_000), object(3_000_000));
    assert!(path.first(&short).is_some() && path.first(&long).is_none());
    let began = cpu_time::ThreadTime::now();
    for _ in 0..100 {
        assert!(path.first(&long).is_none());
    }
    assert!(began.elapsed().as_millis() < 1_000, "{:?}", began.elapsed());
}
