//! Bodies of custom resources, and their decoded objects.

use std::sync::Arc;

use portico_machinery::gvk::GroupVersion;
use serde_json::json;

use super::*;
use crate::model::TypeSetBuilder;
use crate::structural::Structural;
use crate::{Schema, Typed};

pub(crate) fn object_meta() -> Typed {
    let packages = serde_json::from_value(json!({"io.meta.v1": {
        "ObjectMeta": {"fields": {
            "name": {"type": "string", "number": 1},
            "finalizers": {"type": "[]string", "number": 14, "list": "set"},
            "creationTimestamp": {"type": "string", "number": 8},
            "generation": {"type": "int64", "number": 7},
            "labels": {"type": "{}string", "number": 11},
            "ownerReferences": {"type": "[]OwnerReference", "number": 13, "list": "map", "keys": ["uid"]},
        }},
        "OwnerReference": {"fields": {
            "name": {"type": "string", "number": 3}, "uid": {"type": "string", "number": 4},
            "apiVersion": {"type": "string", "number": 5}, "kind": {"type": "string", "number": 1},
        }, "atomic": true},
    }}))
    .unwrap();
    let mut builder = TypeSetBuilder::default();
    crate::description::add(&mut builder, &indexmap::IndexMap::new(), packages).unwrap();
    let types = Arc::new(builder.build().unwrap());
    Schema::named(&types, "io.meta.v1.ObjectMeta").unwrap().typed().unwrap().clone()
}

fn schema() -> Schema {
    let props = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string", "default": "d"},
        "i": {"type": "integer"},
        "nul": {"type": "string", "nullable": true},
        "emb": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
    }}}});
    Schema::structural(Structural::compile(&props).unwrap(), object_meta())
}

fn decode(body: &str) -> Result<Decoded, DecodeError> {
    schema().decode(body.as_bytes(), Format::Json, &GroupVersion::new("ex.io", "v1").kind("Thing"))
}

fn body_with(rest: &str) -> String {
    format!(r#"{{"apiVersion":"ex.io/v1","kind":"Thing","metadata":{{"name":"x"}}{rest}}}"#)
}

#[test]
fn strict_errors_are_listed_in_upstream_order() {
    let body = r#"{"apiVersion":"ex.io/v1","kind":"Thing","metadata":{"zz":1,"ownerReferences":[{"x":1,"name":"n"}],"name":"x"},
        "yy":1,"aa":1,"spec":{"a":"1","a":"2","b":1,"emb":{"apiVersion":"v1","kind":"Pod","metadata":{"q":1}}}}"#;
    let decoded = decode(body).unwrap();
    let want = [
        "duplicate field \"spec.a\"",
        "unknown field \"metadata.ownerReferences[0].x\"",
        "unknown field \"metadata.zz\"",
        "unknown field \"aa\"",
        "unknown field \"spec.b\"",
        "unknown field \"yy\"",
        "unknown field \"spec.emb.metadata.q\"",
    ];
    assert_eq!(decoded.strict, want);
    let preserved = json!({"apiVersion": "ex.io/v1", "kind": "Thing",
        "metadata": {"name": "x", "ownerReferences": [{"name": "n"}]},
        "spec": {"a": "2", "emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {}}}});
    assert_eq!(Value::Object(decoded.object.map().clone()), preserved);
}

#[test]
fn plain_metadata_is_decoded_like_any_other() {
    let rows = [
        r#""name":"x""#,
        r#""name":"""#,
        r#""labels":{"b":"1","a":""},"name":"x""#,
        r#""name":"x","labels":{}"#,
        r#""name":"x","labels":{"a":null}"#,
        r#""name":"x","Labels":{"a":"b"}"#,
        r#""name":null,"finalizers":["a/b"]"#,
        "",
    ];
    for row in rows {
        let metadata = |members: &str| {
            let body = format!(r#"{{"apiVersion":"ex.io/v1","kind":"Thing","metadata":{{{members}}}}}"#);
            decode(&body).unwrap().object.map()["metadata"].clone()
        };
        // A number is not a string, so that the full decoder is used.
        let comma = if row.is_empty() { "" } else { "," };
        let mut long = metadata(&format!(r#""generation":5{comma}{row}"#));
        long.as_object_mut().unwrap().shift_remove("generation");
        assert_eq!(metadata(row).to_string(), long.to_string(), "{row}");
    }
}

#[test]
fn nulls_and_defaults_follow_the_schema() {
    let decoded = decode(&body_with(r#","spec":{"a":null,"i":null,"nul":null}"#)).unwrap();
    assert_eq!(decoded.object.map()["spec"], json!({"a": "d", "nul": null}));
}

#[test]
fn type_mismatches_are_rejected_with_upstream_messages() {
    let unrecognized = "the object provided is unrecognized (must be of type Thing): ";
    let unhandled = "Thing in version \"v1\" cannot be handled as a Thing: ";
    let rows = [
        ("{}".to_owned(), format!("{unrecognized}Object 'Kind' is missing in '{{}}' ({{}})")),
        ("null".to_owned(), format!("{unrecognized}Object 'Kind' is missing in 'null' (6e756c6c)")),
        (
            r#"{"apiVersion":5,"kind":"Thing"}"#.to_owned(),
            format!(
                "{unrecognized}couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string ({{\"apiVersion\":5,\"kind\":\"Thing\" ...)"
            ),
        ),
        (
            r#"{"apiVersion":"a/b/c","kind":"Thing"}"#.to_owned(),
            format!(
                "{unrecognized}unexpected GroupVersion string: a/b/c ({{\"apiVersion\":\"a/b/c\",\"kind\":\" ...)"
            ),
        ),
        (
            r#"{"kind":"Thing"}"#.to_owned(),
            "the API version in the data () does not match the expected API version (ex.io/v1)".to_owned(),
        ),
        (
            r#"{"apiVersion":"ex.io/v1","kind":"Thing","metadata":{"labels":{"a":1}}}"#.to_owned(),
            format!(
                "{unhandled}json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
            ),
        ),
        (
            r#"{"apiVersion":"ex.io/v1","kind":"Thing","metadata":5}"#.to_owned(),
            format!("{unhandled}json: cannot unmarshal number into Go value of type v1.ObjectMeta"),
        ),
        (
            body_with(r#","spec":{"i":1e400}"#),
            format!("{unhandled}json: cannot unmarshal number 1e400 into Go value of type float64"),
        ),
        (
            body_with(r#","spec":{"emb":{"kind":5}}"#),
            format!("{unhandled}spec.emb.kind: Invalid value: 5: must be a string"),
        ),
        (
            body_with(r#","spec":{"emb":{"metadata":{"labels":{"a":1}}}}"#),
            format!(
                "{unhandled}spec.emb.metadata: Invalid value: {{\"labels\":{{\"a\":1}}}}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
            ),
        ),
    ];
    for (body, want) in rows {
        let status = decode(&body).unwrap_err().status();
        assert_eq!((status.message, status.code), (want, 400), "{body}");
    }
}

#[test]
fn objects_of_another_kind_are_not_decoded() {
    let body = r#"{"apiVersion":"ex.io/v1","kind":"Other","metadata":{"name":"x","zz":1},"spec":{"zz":1}}"#;
    let read = decode(body).unwrap();
    assert_eq!((read.object.kind(), &read.object.map()["spec"]), ("Other", &json!({"zz": 1})));
    assert_eq!(read.strict, [r#"unknown field "metadata.zz""#]);

    let expected = GroupVersion::new("ex.io", "v1").kind("Thing");
    let patched = Object::from_json(br#"{"apiVersion":"y/v1","kind":"X","spec":{"zz":1}}"#).unwrap();
    assert_eq!(schema().retype(&patched, &expected).unwrap().object, patched);
}

#[test]
fn results_of_applied_configurations_keep_nulls() {
    let expected = GroupVersion::new("ex.io", "v1").kind("Thing");
    let object = Object::from_json(body_with(r#","spec":{"a":null,"i":null,"zz":1}"#).as_bytes()).unwrap();
    let applied = schema().convert(object.clone(), &expected).unwrap();
    assert_eq!(applied.object.map()["spec"], json!({"a": "d", "i": null}));
    let patched = schema().retype(&object, &expected).unwrap();
    assert_eq!(patched.object.map()["spec"], json!({"a": "d"}));
}

#[test]
fn yaml_and_patch_results_are_decoded() {
    let body = "apiVersion: ex.io/v1\nkind: Thing\nmetadata: {name: x}\nspec: {i: 4.0, zz: 1}\n";
    let expected = GroupVersion::new("ex.io", "v1").kind("Thing");
    let decoded = schema().decode(body.as_bytes(), Format::Yaml, &expected).unwrap();
    assert_eq!(decoded.object.map()["spec"], json!({"a": "d", "i": 4}));
    assert_eq!(decoded.strict, ["unknown field \"spec.zz\""]);
    let again = schema().retype(&decoded.object, &expected).unwrap();
    assert_eq!((again.object, again.strict.len()), (decoded.object, 0));
}

#[test]
fn a_stored_object_is_coerced_once() {
    let rows = [
        (json!({"metadata": {"name": "x", "generation": 2}, "spec": {"a": "b"}}), None),
        (
            json!({"metadata": {"name": "x", "labels": {"a": 1}, "generation": 0}, "old": 1, "spec": {"i": null, "emb": {"kind": 5, "metadata": {"labels": 7, "name": "n"}}}}),
            Some(
                json!({"metadata": {"name": "x", "generation": 1}, "spec": {"a": "d", "emb": {"metadata": {"name": "n"}}}}),
            ),
        ),
    ];
    for (before, after) in rows {
        let mut object = Object::from_map(before.as_object().unwrap().clone());
        assert_eq!(schema().coerce_and_default(&mut object), after.is_some(), "{before}");
        assert_eq!(Value::Object(object.map().clone()), after.unwrap_or(before));
        assert!(!schema().coerce_and_default(&mut object), "the second coercion changed the object");
    }
}
