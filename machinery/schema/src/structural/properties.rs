//! Properties of any schema and any object: walks are idempotent, keep specified fields, and agree.

use portico_machinery::Object;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::correlate::CorrelatedPair;
use super::decode::tests::object_meta;
use super::{Structural, default, nulls, prune, validate};
use crate::Schema;

const NAMES: [&str; 4] = ["a", "b", "c.d", "metadata"];

/// Generates a schema of this depth.
fn schema(depth: u32) -> BoxedStrategy<Value> {
    let scalar = prop_oneof![
        Just(json!({"type": "string", "maxLength": 1})),
        Just(json!({"type": "string", "default": "d"})),
        Just(json!({"type": "integer", "nullable": true, "maximum": 3})),
        Just(json!({"type": "integer", "nullable": true, "default": 1})),
        Just(json!({"x-kubernetes-int-or-string": true, "enum": [1, "x"]})),
        Just(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        Just(
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true})
        ),
        Just(json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}})),
        Just(json!({"type": "object", "additionalProperties": true})),
    ];
    if depth == 0 {
        return scalar.boxed();
    }
    let fields =
        || proptest::collection::hash_map(proptest::sample::select(&NAMES[..]), schema(depth - 1), 0..4);
    prop_oneof![
        1 => scalar,
        3 => (fields(), any::<bool>()).prop_map(|(properties, preserve)| {
            let mut object = json!({"type": "object", "properties": properties});
            if preserve {
                object["x-kubernetes-preserve-unknown-fields"] = true.into();
            } else {
                object["required"] = json!(["a"]);
            }
            object
        }),
        1 => schema(depth - 1).prop_map(|of| json!({"type": "object", "additionalProperties": of})),
        1 => schema(depth - 1).prop_map(|of| json!({"type": "array", "items": of})),
        1 => fields().prop_map(|properties| json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
            "items": {"type": "object", "properties": properties},
        })),
        1 => (schema(depth - 1), fields()).prop_map(|(of, branch)| {
            let mut of = of;
            of["anyOf"] = json!([{"properties": branch}, {"required": ["b"]}]);
            of
        }),
    ]
    .boxed()
}

fn root() -> impl Strategy<Value = Value> {
    let fields = proptest::collection::hash_map(proptest::sample::select(&NAMES[..3]), schema(3), 0..4);
    fields.prop_map(|properties| json!({"type": "object", "properties": properties}))
}

/// Generates any value of this depth.
fn value(depth: u32) -> BoxedStrategy<Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        Just(json!("x")),
        Just(json!("long")),
        Just(json!(1)),
        Just(json!(4.5)),
        Just(json!(true)),
        Just(json!({"kind": 5, "metadata": {"name": "n", "labels": 1, "zz": 2}})),
    ];
    if depth == 0 {
        return scalar.boxed();
    }
    prop_oneof![
        2 => scalar,
        3 => map(depth - 1).prop_map(Value::Object),
        1 => proptest::collection::vec(value(depth - 1), 0..3).prop_map(Value::Array),
    ]
    .boxed()
}

fn map(depth: u32) -> BoxedStrategy<Map<String, Value>> {
    let names = proptest::sample::select(&["a", "b", "c.d", "metadata", "z"][..]);
    proptest::collection::hash_map(names, value(depth), 0..5)
        .prop_map(|map| map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        .boxed()
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    map(4).prop_map(|mut map| {
        map.insert("metadata".to_owned(), json!({"name": "n", "generation": 1}));
        map
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn walks_are_idempotent(props in root(), mut map in object()) {
        let schema = Structural::compile(&props).unwrap();
        let before = map.clone();
        let pruned = prune::prune_object(&mut map, schema.root(), true);
        prop_assert_eq!(pruned.has_changed, map != before);
        prop_assert_eq!(pruned.has_changed, !pruned.paths.is_empty());
        prop_assert!(!prune::prune_object(&mut map, schema.root(), false).has_changed);
        let before = map.clone();
        prop_assert_eq!(nulls::drop_nulls(&mut map, schema.root()), map != before);
        prop_assert!(!nulls::drop_nulls(&mut map, schema.root()));
        let before = map.clone();
        prop_assert_eq!(default::set_defaults(&mut map, schema.root()).has_changed, map != before);
        prop_assert!(!default::set_defaults(&mut map, schema.root()).has_changed);
    }

    #[test]
    fn named_fields_survive_pruning(props in root(), mut map in object()) {
        let schema = Structural::compile(&props).unwrap();
        let named: Vec<String> = map.keys().filter(|k| schema.root().property(k).is_some()).cloned().collect();
        prune::prune_object(&mut map, schema.root(), false);
        for name in named {
            prop_assert!(map.contains_key(&name));
        }
    }

    #[test]
    fn coercion_is_idempotent_and_visible_in_the_bytes(props in root(), map in object()) {
        let schema = Schema::structural(Structural::compile(&props).unwrap(), object_meta());
        let mut object = Object::from_map(map);
        schema.normalize(&mut object);
        let bytes = object.to_json();
        let changed = schema.coerce_and_default(&mut object);
        // The check of the bytes may be wrong in one direction only: it must not accept an object that would change.
        prop_assert!(!(schema.is_coerced_and_defaulted(&bytes) && changed));
        prop_assert!(!schema.coerce_and_default(&mut object), "the second coercion changed the object");
        let coerced = object.clone();
        schema.normalize(&mut object);
        prop_assert_eq!(&coerced, &object);
        prop_assert!(schema.is_coerced_and_defaulted(&object.to_json()), "{:?}", String::from_utf8(object.to_json()));
    }

    #[test]
    fn unchanged_values_are_not_errors(props in root(), mut map in object()) {
        let schema = Structural::compile(&props).unwrap();
        let errors = validate::validate_object(&map, None, schema.root());
        let unchanged = validate::validate_object(&map, Some(&map), schema.root());
        prop_assert!(unchanged.len() <= errors.len());
        // If the schema describes all values, nothing is reported.
        map.shift_remove("metadata");
        if CorrelatedPair::of_objects(&map, &map, schema.root()).is_same() {
            prop_assert_eq!(validate::validate_object(&map, Some(&map), schema.root()), vec![]);
        }
    }
}
