//! Validation compared with the responses of kube-apiserver 1.36.3 for the same schema and objects.

use serde_json::json;

use super::*;
use crate::structural::{Structural, body};

const RECORDED: &str = include_str!("../../testdata/structural-values.json");

fn reported(errors: &[Error]) -> Vec<(String, String, String)> {
    let mut reported: Vec<_> = errors
        .iter()
        .map(|e| (e.path.to_string(), e.kind.cause_reason().to_owned(), e.body.clone()))
        .collect();
    reported.sort();
    reported
}

fn recorded(errors: &Value) -> Vec<(String, String, String)> {
    let text = |error: &Value, field: &str| error[field].as_str().unwrap().to_owned();
    let errors = errors.as_array().unwrap().iter();
    errors.map(|error| (text(error, "field"), text(error, "reason"), text(error, "message"))).collect()
}

#[test]
fn errors_match_upstream() {
    // Parsed like a request body, so that numbers have the same types.
    let recording = body::parse_body(RECORDED).unwrap().value;
    let props = json!({"type": "object", "properties": {"spec": recording["schema"]}});
    let schema = Structural::compile(&props).unwrap();
    let rows = recording["rows"].as_array().unwrap();
    assert!(rows.len() > 100);
    let mut forgiven = 0;
    for row in rows {
        let mut map = Map::from_iter([("spec".to_owned(), row["spec"].clone())]);
        crate::structural::nulls::drop_nulls(&mut map, schema.root());
        let errors = validate_object(&map, None, schema.root());
        assert_eq!(reported(&errors), recorded(&row["errors"]), "{}", row["spec"]);
        // Errors of unchanged values are dropped, except for values that the schema does not describe.
        let supported = CorrelatedPair::of_objects(&map, &map, schema.root())
            .key("spec")
            .is_some_and(|spec| spec.is_same());
        forgiven += usize::from(supported);
        if !supported {
            continue;
        }
        assert_eq!(validate_object(&map, Some(&map), schema.root()), [], "{}", row["spec"]);
    }
    assert!(forgiven > 100, "{forgiven}");
}

const RECORDED_CHANGES: &str = include_str!("../../testdata/structural-changes.json");

#[test]
fn errors_of_unchanged_values_are_dropped_as_upstream_does() {
    let recording = body::parse_body(RECORDED_CHANGES).unwrap().value;
    let schema = Structural::compile(&recording["schema"]).unwrap();
    let old = recording["old"].as_object().unwrap();
    for row in recording["rows"].as_array().unwrap() {
        let mut new = old.clone();
        new["spec"].as_object_mut().unwrap().extend(row["change"].as_object().unwrap().clone());
        let errors = validate_object(&new, Some(old), schema.root());
        assert_eq!(reported(&errors), recorded(&row["errors"]), "{}", row["name"]);
    }
    for row in recording["status"].as_array().unwrap().iter().filter(|row| !row["status"].is_null()) {
        let mut new = old.clone();
        new.insert("status".to_owned(), row["status"].clone());
        let pair = CorrelatedPair::of_objects(&new, old, schema.root()).key("status");
        let errors =
            field("status", &new["status"], schema.root().property("status").unwrap(), pair.as_ref());
        assert_eq!(reported(&errors), recorded(&row["errors"]), "status {}", row["name"]);
    }
}

#[test]
fn many_errors_and_long_paths_have_bounded_size() {
    let props = json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": {
        "type": "array", "items": {"type": "string"}}}}});
    let schema = Structural::compile(&props).unwrap();
    let list: Vec<u32> = (0..100_000).collect();
    let map = Map::from_iter([("m".to_owned(), json!({"k".repeat(300_000): list}))]);
    let start = cpu_time::ThreadTime::now();
    let errors = validate_object(&map, None, schema.root());
    assert!((1..10).contains(&errors.len()), "{}", errors.len());
    assert!(start.elapsed().as_secs() < 5);
    let map = Map::from_iter([("m".to_owned(), json!({"k": list}))]);
    assert_eq!(
        validate_object(&map, None, schema.root()).len(),
        portico_machinery::status::MAX_FIELD_ERRORS + 1
    );
}
