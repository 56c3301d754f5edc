//! Tests of decoding: dropped, reported and rejected fields, with upstream's messages.

use std::sync::Arc;

use portico_machinery::GroupVersion;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::Schema;
use crate::model::{TypeSet, TypeSetBuilder};

fn types() -> Arc<TypeSet> {
    let packages = serde_json::from_value(json!({"io.test.v1": {
        "Thing": {"fields": {
            "kind": {"type": "string"},
            "apiVersion": {"type": "string"},
            "spec": {"type": "ThingSpec", "number": 1, "emit": "struct"},
            "data": {"type": "{}bytes", "number": 2},
            "raw": {"type": "any", "number": 3},
            "when": {"type": "time", "number": 4},
        }},
        "ThingSpec": {"fields": {
            "int": {"type": "int32", "number": 1},
            "long": {"type": "int64", "number": 2},
            "text": {"type": "string", "number": 3},
            "flag": {"type": "boolean", "number": 4, "emit": "pointer"},
            "list": {"type": "[]string", "number": 5, "emit": "always"},
            "map": {"type": "{}string", "number": 6},
            "port": {"type": "int-or-string", "number": 7},
            "items": {"type": "[]ThingSpec", "number": 8},
            "size": {"type": "quantity", "number": 9},
            "named": {"type": "{}ThingSpec", "number": 10},
        }},
    }}))
    .unwrap();
    let mut builder = TypeSetBuilder::default();
    crate::description::add(&mut builder, &indexmap::IndexMap::new(), packages).unwrap();
    Arc::new(builder.build().unwrap())
}

fn schema() -> Schema {
    Schema::named(&types(), "io.test.v1.Thing").unwrap()
}

fn thing() -> GroupVersionKind {
    GroupVersion::new("test.io", "v1").kind("Thing")
}

fn decode(body: &str) -> Result<Decoded, DecodeError> {
    schema().decode(body.as_bytes(), Format::Json, &thing())
}

#[test]
fn unknown_and_duplicate_fields_are_listed_in_text_order() {
    let body = r#"{"dota":{"x":[{}]},"spec":{"text":"a","colour":1,"text":"b","items":[{},{"q":1}],"map":{"k":"1","k":"2"},
        "named":{"x":{"q":1}}},"raw":{"a":1,"a":2},"dota":1,"Spec":{}}"#;
    let decoded = decode(body).unwrap();
    let want = [
        "unknown field \"dota\"",
        "unknown field \"spec.colour\"",
        "duplicate field \"spec.text\"",
        "unknown field \"spec.items[1].q\"",
        "duplicate field \"spec.map.k\"",
        "unknown field \"spec.named.x.q\"",
        "unknown field \"Spec\"",
    ];
    assert_eq!(decoded.strict, want);
    let spec = decoded.object.at(&["spec"]);
    assert_eq!((spec.field("text").str(), spec.field("map").field("k").str()), ("b", "2"));
    assert!(!decoded.object.at(&["dota"]).is_present());
    let status = decoded.strict_status(&thing()).unwrap();
    assert!(status.message.starts_with(
        "Thing in version \"v1\" cannot be handled as a Thing: strict decoding error: unknown field \"dota\", unknown"
    ));
}

#[test]
fn at_most_a_hundred_fields_are_listed_once_each() {
    let fields: Vec<String> = (0..300).map(|i| format!("\"f{}\":1", i % 200)).collect();
    let decoded = decode(&format!("{{{}}}", fields.join(","))).unwrap();
    assert_eq!(decoded.strict.len(), 100);
}

#[test]
fn a_repeated_struct_or_map_is_merged() {
    let decoded =
        decode(r#"{"data":{"a":"YQ=="},"data":{"b":"Yg=="},"spec":{"int":1},"spec":{"text":"x"}}"#).unwrap();
    assert_eq!(decoded.object.at(&["data"]).len(), 2);
    assert_eq!(decoded.object.at(&["spec"]).len(), 2);
}

#[test]
fn nulls_are_absent_fields_or_zero_elements() {
    let decoded =
        decode(r#"{"spec":{"int":null,"list":[null,"a"],"map":{"k":null},"items":[null]},"raw":null}"#)
            .unwrap();
    let want = json!({"spec":{"list":["","a"],"map":{"k":""},"items":[{}]},"kind":"Thing","apiVersion":"test.io/v1"});
    assert_eq!(Value::Object(decoded.object.map().clone()), want);
}

const NO_QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

#[test]
fn a_value_of_the_wrong_type_is_reported_as_upstream_reports_it() {
    let rows = [
        (
            r#"{"spec":{"int":"1"}}"#,
            "json: cannot unmarshal string into Go struct field ThingSpec.spec.int of type int32",
        ),
        (
            r#"{"spec":{"int":1.5}}"#,
            "json: cannot unmarshal number 1.5 into Go struct field ThingSpec.spec.int of type int32",
        ),
        (
            r#"{"spec":{"int":3000000000}}"#,
            "json: cannot unmarshal number 3000000000 into Go struct field ThingSpec.spec.int of type int32",
        ),
        (
            r#"{"spec":{"text":1}}"#,
            "json: cannot unmarshal number into Go struct field ThingSpec.spec.text of type string",
        ),
        (
            r#"{"spec":{"flag":"true"}}"#,
            "json: cannot unmarshal string into Go struct field ThingSpec.spec.flag of type bool",
        ),
        (
            r#"{"spec":{"list":{}}}"#,
            "json: cannot unmarshal object into Go struct field ThingSpec.spec.list of type []string",
        ),
        (
            r#"{"spec":{"list":[[]]}}"#,
            "json: cannot unmarshal array into Go struct field ThingSpec.spec.list of type string",
        ),
        (
            r#"{"spec":{"items":[{"text":true}]}}"#,
            "json: cannot unmarshal bool into Go struct field ThingSpec.spec.items.text of type string",
        ),
        (
            r#"{"spec":[]}"#,
            "json: cannot unmarshal array into Go struct field Thing.spec of type v1.ThingSpec",
        ),
        (
            r#"{"spec":{"map":[1]}}"#,
            "json: cannot unmarshal array into Go struct field ThingSpec.spec.map of type map[string]string",
        ),
        (
            r#"{"spec":{"port":true}}"#,
            "json: cannot unmarshal bool into Go struct field ThingSpec.spec.port of type int32",
        ),
        (r#"{"data":{"a":"***"}}"#, "illegal base64 data at input byte 0"),
        (r#"{"when":5}"#, "json: cannot unmarshal number into Go struct field Thing.when of type string"),
        (r#"{"data":3,"spec":{"size":[]}}"#, NO_QUANTITY),
        (
            r#"{"when":"x"}"#,
            "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"",
        ),
        (r#"{"spec":{"size":"1x"}}"#, NO_QUANTITY),
    ];
    for (body, want) in rows {
        let error = decode(body).unwrap_err();
        let text = format!("Thing in version \"v1\" cannot be handled as a Thing: {want}");
        assert_eq!(error.to_string(), text, "{body}");
        assert_eq!((error.status().code, error.status().reason.as_str()), (400, "BadRequest"));
        let patch = error.patch_status("p");
        assert_eq!((patch.code, patch.details.unwrap().causes[0].field.as_str()), (422, "patch"));
    }
}

#[test]
fn text_that_is_not_json_is_rejected_with_its_first_bytes() {
    let rows = [
        ("{not json", "invalid character 'n' looking for beginning of object key string ({not json)"),
        ("", "unexpected end of JSON input (<empty>)"),
        ("x: 1", "invalid character 'x' looking for beginning of value (783a2031)"),
        (
            "{\"spec\":{\"int\":\"1\"}} {",
            "invalid character '{' after top-level value ({\"spec\":{\"int\":\"1\"}} {)",
        ),
    ];
    for (body, want) in rows {
        let want = format!(
            "the object provided is unrecognized (must be of type Thing): couldn't get version/kind; json parse error: {want}"
        );
        assert_eq!(decode(body).unwrap_err().to_string(), want);
    }
    assert_eq!(decode(&"[".repeat(100_000)).unwrap_err().status().code, 400);
}

#[test]
fn another_kind_or_version_is_refused() {
    let error = decode(r#"{"kind":"ConfigMap","apiVersion":"v1","spec":5}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ConfigMap in version \"v1\" cannot be handled as a Thing: no kind \"ConfigMap\" is registered for version \"v1\""
    );
    let error = decode(r#"{"kind":"Thing","apiVersion":"other.io/v2"}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the API version in the data (other.io/v2) does not match the expected API version (test.io/v1)"
    );
    assert_eq!(decode(r#"{"kind":"Thing"}"#).unwrap().object.api_version(), "test.io/v1");
}

#[test]
fn yaml_is_decoded_like_json_with_its_own_scalars() {
    let body = "kind: Thing\nspec:\n  int: 0644\n  flag: yes\n  text: hello\n  text: again\n  colour: red\nwhen: 2026-01-02T03:04:05+01:00\n";
    let decoded = schema().decode(body.as_bytes(), Format::Yaml, &thing()).unwrap();
    assert!(decoded.strict[0].ends_with(": key \"text\" already set in map"), "{:?}", decoded.strict);
    assert_eq!(decoded.strict[1..], ["unknown field \"spec.colour\""]);
    let want = json!({"kind":"Thing","spec":{"int":420,"flag":true,"text":"again"},"when":"2026-01-02T02:04:05Z","apiVersion":"test.io/v1"});
    assert_eq!(Value::Object(decoded.object.map().clone()), want);
    let flow = schema().decode(b"{kind: Thing, spec: {int: 1}}", Format::Yaml, &thing()).unwrap();
    assert_eq!(flow.object.at(&["spec", "int"]).i64(), Some(1));
    assert_eq!(schema().decode(b"a: [", Format::Yaml, &thing()).unwrap_err().status().code, 400);
}

#[test]
fn bytes_are_canonicalized() {
    let decoded = decode(r#"{"data":{"a":"YWJj\nZGVm","b":"YR==","c":""}}"#).unwrap();
    let want = json!({"a":"YWJjZGVm","b":"YQ==","c":""});
    assert_eq!(decoded.object.get(&["data"]).unwrap().0, want);
}

#[test]
fn a_body_with_too_many_values_is_rejected_before_it_uses_memory() {
    for value in ["null,", "{},", "[],", r#"{"a":0},"#, r#"{"text":"a"},"#] {
        for field in ["items", "unknown"] {
            let text = format!(r#"{{"spec":{{"{field}":[{}{{}}]}}}}"#, value.repeat(MAX_VALUES));
            for (format, says) in [(Format::Json, "too many values"), (Format::Yaml, "values")] {
                let error = schema().decode(text.as_bytes(), format, &thing()).unwrap_err();
                assert!(error.to_string().contains(says), "{error}");
            }
        }
    }
    let lines = |count: usize| (0..count).map(|at| format!("k{at}: x\n")).collect::<String>();
    schema().decode(lines(MAX_VALUES).as_bytes(), Format::Yaml, &thing()).unwrap();
    let error = schema().decode(lines(3 * MAX_VALUES).as_bytes(), Format::Yaml, &thing()).unwrap_err();
    assert!(error.to_string().contains("too many values"), "{error}");
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        for format in [Format::Json, Format::Yaml] {
            let _ = schema().decode(&bytes, format, &thing());
        }
    }

    #[test]
    fn texts_of_random_tokens_do_not_panic_the_decoder(
        parts in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", ":", ",", "\"spec\"", "\"int\"", "\"list\"", "\"raw\"", "\"data\"", "\"when\"", "null", "1", "-0", "\"x\"",
            "true", "\"2026-01-02T03:04:05Z\"", "&a ", "*a", "\n", "- ", "<<", "|", "'", " ", "\u{e9}",
        ]), 0..24),
    ) {
        let text = parts.concat();
        for format in [Format::Json, Format::Yaml] {
            if let Ok(decoded) = schema().decode(text.as_bytes(), format, &thing()) {
                let mut object = decoded.object;
                schema().default(&mut object);
                schema().normalize(&mut object);
                let again = schema().retype(&object, &thing()).unwrap();
                prop_assert_eq!(again.strict, Vec::<String>::new());
                let mut second = again.object;
                schema().normalize(&mut second);
                prop_assert_eq!(second.to_json(), object.to_json());
            }
        }
    }
}
