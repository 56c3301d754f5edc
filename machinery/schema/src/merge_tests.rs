//! Tests of patches: the tables of the RFCs, upstream's deviations and limits, and recorded strategic merges.

use serde_json::json;

use super::*;
use crate::Schema;
use crate::model::{TypeSet, TypeSetBuilder};

fn object(value: Value) -> Object {
    match value {
        Value::Object(map) => Object::from_map(map),
        other => panic!("{other} is not an object"),
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// Table of RFC 7396, appendix A, one level down so that both sides are objects.
#[test]
fn merge_patch_follows_the_rfcs_table() {
    let rows = [
        (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
        (json!({"a":"b"}), json!({"b":"c"}), json!({"a":"b","b":"c"})),
        (json!({"a":"b"}), json!({"a":null}), json!({})),
        (json!({"a":"b","b":"c"}), json!({"a":null}), json!({"b":"c"})),
        (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
        (json!({"a":"c"}), json!({"a":["b"]}), json!({"a":["b"]})),
        (json!({"a":{"b":"c"}}), json!({"a":{"b":"d","c":null}}), json!({"a":{"b":"d"}})),
        (json!({"a":[{"b":"c"}]}), json!({"a":[1]}), json!({"a":[1]})),
        (json!({"a":1}), json!({"a":[{"b":null,"c":[{"d":null}]},null]}), json!({"a":[{"c":[{}]},null]})),
        (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
        (json!({}), json!({"a":{"bb":{"ccc":null}}}), json!({"a":{"bb":{}}})),
        (json!({"a":"foo"}), json!({"a":{"b":"c"}}), json!({"a":{"b":"c"}})),
    ];
    for (current, patch, want) in rows {
        let result = merge_patch(&object(current), &bytes(&patch)).unwrap();
        assert_eq!(result, object(want), "{patch}");
    }
}

#[test]
fn a_merge_patch_that_is_no_object_is_a_bad_request() {
    for patch in ["[1]", "null", "{", "1 2", ""] {
        let error = merge_patch(&Object::default(), patch.as_bytes()).unwrap_err();
        assert_eq!(error.status().code, 400, "{patch}");
    }
}

#[test]
fn json_patch_adds_replaces_removes_moves_copies_and_tests() {
    let current = json!({"data":{"k":"v","l":"w"},"labels":{"a":"1","b":"2"},"x/y~z":1,"list":[1,2,3]});
    let rows = [
        (json!([]), "", json!(null)),
        (
            json!([{"op":"test","path":"/added","value":null}, {"op":"add","path":"/added","value":[1]}]),
            "/added",
            json!([1]),
        ),
        (
            json!([{"op":"test","path":"/data/k","value":"v"}, {"op":"add","path":"/data/new","value":"n"}]),
            "/data/new",
            json!("n"),
        ),
        (json!([{"op":"replace","path":"/data/k","value":"v2"}]), "/data/k", json!("v2")),
        (json!([{"op":"replace","path":"/data/none","value":"v2"}]), "/data/none", json!("v2")),
        (json!([{"op":"remove","path":"/labels/b"}]), "/labels", json!({"a":"1"})),
        (json!([{"op":"copy","from":"/data/k","path":"/data/c"}]), "/data/c", json!("v")),
        (json!([{"op":"move","from":"/data/l","path":"/data/m"}]), "/data", json!({"k":"v","m":"w"})),
        (json!([{"op":"replace","path":"/x~1y~0z","value":2}]), "/x~1y~0z", json!(2)),
        (json!([{"op":"add","path":"/list/-","value":4}]), "/list", json!([1, 2, 3, 4])),
        (json!([{"op":"add","path":"/list/-1","value":4}]), "/list", json!([1, 2, 3, 4])),
        (json!([{"op":"add","path":"/list/0","value":0}]), "/list", json!([0, 1, 2, 3])),
        (json!([{"op":"remove","path":"/list/-1"}]), "/list", json!([1, 2])),
        (json!([{"op":"replace","path":"/list/1","value":9}]), "/list", json!([1, 9, 3])),
        (json!([{"op":"copy","from":"/none","path":"/data"}]), "/data", json!(null)),
        (json!([{"op":"replace","path":"before/list","value":9}]), "/list", json!(9)),
        (json!([{"op":"replace","path":"","value":{"whole":1}}]), "/whole", json!(1)),
    ];
    for (patch, path, want) in rows {
        let result = json_patch(&object(current.clone()), &bytes(&patch)).unwrap();
        let found = Value::Object(result.map().clone()).pointer(path).cloned().unwrap_or_default();
        if path.is_empty() {
            assert_eq!(result, object(current.clone()))
        } else {
            assert_eq!(found, want, "{patch}")
        }
    }
}

#[test]
fn strict_errors_of_patches_list_duplicate_and_unknown_fields() {
    let operations =
        r#"[{"op":"add","op":"add","path":"/a","value":{"b":1,"b":2}},{"op":"test","path":"/a","Value":1}]"#;
    let expected = [
        r#"json patch duplicate field "[0].op""#,
        r#"json patch duplicate field "[0].value.b""#,
        r#"json patch unknown field "[1].Value""#,
    ];
    assert_eq!(diagnostics(operations.as_bytes(), true), expected);
    assert_eq!(diagnostics(br#"{"a":{"b":1,"b":2},"c":1}"#, false), [r#"duplicate field "a.b""#]);
    assert!(diagnostics(b"{", false).is_empty());
}

#[test]
fn type_errors_of_operations_name_the_field() {
    let rows = [
        ("[1]", "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        (
            r#"[{"path":1}]"#,
            "json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string",
        ),
    ];
    for (patch, want) in rows {
        let error = json_patch(&Object::default(), patch.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), format!("error decoding patch: {want}"));
    }
}

#[test]
fn failed_operations_are_unprocessable_with_upstream_messages() {
    let current = json!({"data":{"k":"v"},"list":[1]});
    let rows = [
        json!([{"op":"test","path":"/data/k","value":"w"}]),
        json!([{"op":"test","path":"/data/none","value":""}]),
        json!([{"op":"test","path":"/none/b","value":null}]),
        json!([{"op":"test","path":"/list/1","value":null}]),
        json!([{"op":"remove","path":"/data/none"}]),
        json!([{"op":"add","path":"/none/b","value":1}]),
        json!([{"op":"change","path":"/data/k","value":1}]),
        json!([{"op":"add","value":1}]),
        json!([{"op":"add","path":"","value":{}}]),
        json!([{"op":"move","path":"/data/k"}]),
        json!([{"op":"copy","from":"/none/b","path":"/data/k"}]),
        json!([null]),
        json!([{"op":"replace","path":"","value":"x"}]),
        json!([{"op":"add","path":"/list/5","value":1}]),
        json!([{"op":"remove","path":"/list/-2"}]),
        json!([{"op":"replace","path":"/list/x","value":1}]),
        json!([{"op":"add","path":"/data/k/deeper","value":1}]),
    ];
    for patch in rows {
        let status = json_patch(&object(current.clone()), &bytes(&patch)).unwrap_err().status();
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"), "{patch}");
        assert_eq!(status.message, "the server rejected our request due to an error in our request");
        assert_eq!(status.details, Some(portico_machinery::status::Details::default()));
    }
    for patch in ["{\"op\":\"remove\",\"path\":\"/data/k\"}", "[{", "[1]", ""] {
        assert_eq!(json_patch(&object(current.clone()), patch.as_bytes()).unwrap_err().status().code, 400);
    }
}

#[test]
fn json_patches_are_bounded_in_operations_copies_and_work() {
    let many = format!("[{}]", vec!["{}"; MAX_OPERATIONS + 1].join(","));
    let status = json_patch(&Object::default(), many.as_bytes()).unwrap_err().status();
    assert_eq!((status.code, status.reason.as_str()), (413, "RequestEntityTooLarge"));
    assert_eq!(
        status.message,
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    );

    let big = object(json!({"a": "x".repeat(1024 * 1024)}));
    let copies: Vec<Value> =
        (0..4).map(|i| json!({"op":"copy","from":"/a","path":format!("/b{i}")})).collect();
    let error = json_patch(&big, &bytes(&Value::Array(copies))).unwrap_err();
    assert!(matches!(&error, PatchError::Failed(why) if why.contains("copied")), "{error:?}");

    let long = object(json!({"a": vec![0; 200_000]}));
    let shifts = Value::Array(vec![json!({"op":"add","path":"/a/0","value":1}); 9_999]);
    let start = cpu_time::ThreadTime::now();
    assert!(json_patch(&long, &bytes(&shifts)).is_err());
    assert!(start.elapsed().as_secs() < 5);
}

/// Half a million levels overflowed the stack of recursive code, which ended the process.
#[test]
fn json_patches_cannot_nest_deeper_than_a_body() {
    let chain = |levels: usize| (0..levels).fold(json!({}), |child, _| json!({"c": child}));
    let deepest = format!("/b{}", "/c".repeat(80));
    let moves = json!([
        {"op": "add", "path": "/b", "value": chain(79)},
        {"op": "move", "from": "/a", "path": deepest},
        {"op": "move", "from": "/b", "path": "/a"},
    ]);
    let copies = json!([{"op": "copy", "from": "/a", "path": format!("/a{}", "/c".repeat(60))}]);
    for round in [moves, copies] {
        let repeat = |times: usize| Value::Array(vec![round.as_array().unwrap().clone(); times].concat());
        let current = object(json!({"a": chain(60)}));
        assert!(json_patch(&object(json!({"a": chain(5)})), &bytes(&json!([]))).is_ok());
        let refused = json_patch(&current, &bytes(&repeat(20))).unwrap_err();
        assert!(refused.to_string().contains("due to an error"), "{refused}");
    }
    let within = json!([{"op": "add", "path": "/a/c", "value": chain(90)}]);
    assert!(json_patch(&object(json!({"a": chain(5)})), &bytes(&within)).is_ok());
}

/// Types with all features that affect strategic merge.
fn types() -> std::sync::Arc<TypeSet> {
    let packages = serde_json::from_value(json!({"t": {
        "Root": {"fields": {
            "kind": {"type": "string"},
            "annotations": {"type": "{}string", "number": 1},
            "finalizers": {"type": "[]string", "number": 2, "patch": "merge"},
            "containers": {"type": "[]Container", "number": 3, "patch": "merge", "mergeKey": "name"},
            "tolerations": {"type": "[]Container", "number": 4},
            "strategy": {"type": "Strategy", "number": 5, "patch": "retainKeys"},
            "whole": {"type": "Strategy", "number": 6, "patch": "replace"},
        }},
        "Container": {"fields": {
            "name": {"type": "string", "number": 1},
            "image": {"type": "string", "number": 2},
            "env": {"type": "[]Container", "number": 3, "patch": "merge", "mergeKey": "name"},
            "args": {"type": "[]string", "number": 4},
        }},
        "Strategy": {"fields": {
            "type": {"type": "string", "number": 1},
            "rolling": {"type": "object", "number": 2},
        }},
    }}))
    .unwrap();
    let mut builder = TypeSetBuilder::default();
    crate::description::add(&mut builder, &indexmap::IndexMap::new(), packages).unwrap();
    std::sync::Arc::new(builder.build().unwrap())
}

fn merged(current: Value, patch: &Value) -> Result<Value, PatchError> {
    let schema = Schema::named(&types(), "t.Root").unwrap();
    schema.strategic_merge(&object(current), &bytes(patch)).map(|o| Value::Object(o.map().clone()))
}

#[test]
fn strategic_merge_follows_strategies_and_directives() {
    let containers = json!([{"name":"one","image":"i1","args":["x","y"]},{"name":"two","image":"i2"}]);
    let rows = [
        (
            "elements are found by key, new ones come as the patch orders them",
            json!({"containers": containers}),
            json!({"containers":[{"name":"one","image":"i3"},{"name":"three"}]}),
            json!({"containers":[{"name":"one","image":"i3","args":["x","y"]},{"name":"three"},{"name":"two","image":"i2"}]}),
        ),
        (
            "lists without a strategy are replaced",
            json!({"tolerations":[{"name":"a"}]}),
            json!({"tolerations":[{"name":"b"}]}),
            json!({"tolerations":[{"name":"b"}]}),
        ),
        (
            "lists of scalars in elements are replaced",
            json!({"containers": [containers[0]]}),
            json!({"containers":[{"name":"one","args":["z"]}]}),
            json!({"containers":[{"name":"one","image":"i1","args":["z"]}]}),
        ),
        (
            "$patch delete removes an element",
            json!({"containers": containers}),
            json!({"containers":[{"name":"two","$patch":"delete"}]}),
            json!({"containers":[containers[0]]}),
        ),
        (
            "$patch replace replaces a list",
            json!({"containers": containers}),
            json!({"containers":[{"$patch":"replace"},{"name":"z"}]}),
            json!({"containers":[{"name":"z"}]}),
        ),
        (
            "$patch replace replaces a map",
            json!({"annotations":{"a":"1"}}),
            json!({"annotations":{"$patch":"replace","only":"this"}}),
            json!({"annotations":{"only":"this"}}),
        ),
    ];
    check(rows);
}

#[test]
fn strategic_merge_orders_retains_and_deletes() {
    let rows = [
        (
            "$patch delete empties a map",
            json!({"kind":"K","annotations":{"a":"1"}}),
            json!({"annotations":{"$patch":"delete"}}),
            json!({"kind":"K","annotations":{}}),
        ),
        (
            "$setElementOrder orders the listed elements; other elements keep their position",
            json!({"containers":[{"name":"one"},{"name":"three"}]}),
            json!({"$setElementOrder/containers":[{"name":"new"},{"name":"one"},{"name":"three"}],"containers":[{"name":"new"}]}),
            json!({"containers":[{"name":"new"},{"name":"one"},{"name":"three"}]}),
        ),
        (
            "$setElementOrder alone reorders; elements that it omits keep the position on the server",
            json!({"finalizers":["a","b","c"]}),
            json!({"$setElementOrder/finalizers":["c","a"]}),
            json!({"finalizers":["b","c","a"]}),
        ),
        (
            "$retainKeys drops other keys",
            json!({"strategy":{"type":"Rolling","rolling":{"x":1}}}),
            json!({"strategy":{"$retainKeys":["type"],"type":"Recreate"}}),
            json!({"strategy":{"type":"Recreate"}}),
        ),
        (
            "sets of scalars: elements of the patch come first, if the order allows it",
            json!({"finalizers":["a","b"]}),
            json!({"finalizers":["c","a"]}),
            json!({"finalizers":["c","a","b"]}),
        ),
        (
            "$deleteFromPrimitiveList removes scalars",
            json!({"finalizers":["c","a","b"]}),
            json!({"$deleteFromPrimitiveList/finalizers":["a","c"]}),
            json!({"finalizers":["b"]}),
        ),
        (
            "null deletes",
            json!({"annotations":{"a":"1","b":"2"}}),
            json!({"annotations":{"a":null},"tolerations":null}),
            json!({"annotations":{"b":"2"}}),
        ),
        (
            "the replace strategy drops the old value",
            json!({"whole":{"type":"a","rolling":{}}}),
            json!({"whole":{"type":"b"}}),
            json!({"whole":{"type":"b"}}),
        ),
        (
            "unknown fields are merged one level deep",
            json!({"strategy":{"rolling":{"a":1,"b":2}}}),
            json!({"strategy":{"rolling":{"a":[2],"b":null,"c":{"d":null}}}}),
            json!({"strategy":{"rolling":{"a":[2],"c":{}}}}),
        ),
        (
            "new values omit maps with a directive",
            json!({}),
            json!({"containers":[{"name":"x","env":[{"name":"e","$patch":"delete"}]}],"strategy":{"$patch":"replace","type":null}}),
            json!({"containers":[{"name":"x","env":[]}]}),
        ),
    ];
    check(rows);
}

/// Checks rows of name, object, patch, result.
fn check(rows: impl IntoIterator<Item = (&'static str, Value, Value, Value)>) {
    for (name, current, patch, want) in rows {
        assert_eq!(merged(current, &patch).unwrap(), want, "{name}");
    }
}

#[test]
fn conditions_follow_the_order_of_the_patch() {
    let patch = json!({"containers":[{"name":"Progressing"},{"name":"Available"}]});
    let result = merged(json!({"containers":[{"name":"Available","image":"R"}]}), &patch).unwrap();
    assert_eq!(result, json!({"containers":[{"name":"Progressing"},{"name":"Available","image":"R"}]}));
}

#[test]
fn unmergeable_patches_are_rejected_as_upstream_does() {
    let rows = [
        (json!({"containers":[{"image":"x"}]}), 500),
        (json!({"containers":["x"]}), 500),
        (json!({"containers":[null]}), 500),
        (json!({"$setElementOrder/containers":[{"name":"a"}],"containers":[{"name":"b"}]}), 500),
        (json!({"$setElementOrder/containers":1}), 500),
        (json!({"annotations":{"$patch":"merge"}}), 500),
        (json!({"$setElementOrder":[]}), 400),
        (json!({"strategy":{"$retainKeys":["rolling"],"type":"Recreate"}}), 400),
        (json!({"strategy":{"$retainKeys":"x"}}), 400),
        (json!({"strategy":{"rolling":{"a":{"b":1}}}}), 500),
    ];
    let current = || json!({"strategy":{"rolling":{"a":{}}},"annotations":{},"containers":[{"name":"a"}]});
    for (patch, code) in rows {
        assert_eq!(merged(current(), &patch).unwrap_err().status().code, code, "{patch}");
    }
}

#[test]
fn new_values_are_added_without_nulls_and_directives() {
    let patch = json!({"containers":[{"image":"x"},{"$patch":"delete"}],"annotations":{"a":null,"b":"1"}});
    let want = json!({"containers":[{"image":"x"}],"annotations":{"b":"1"}});
    assert_eq!(merged(json!({}), &patch).unwrap(), want);
}

#[test]
fn errors_of_unknown_directives_contain_the_map() {
    let patch = json!({"annotations":{"z":1.5,"a":[null,"b"],"$patch":"munge"}});
    let status = merged(json!({"annotations":{}}), &patch).unwrap_err().status();
    let reported = "unknown patch type: munge in map: map[$patch:munge a:[<nil> b] z:1.5]";
    assert_eq!((status.code, status.message.as_str(), status.reason.as_str()), (500, reported, ""));
}

#[test]
fn patches_of_a_wrong_type_are_rejected_with_upstream_messages() {
    let current = object(json!({"a": 1}));
    let text = |error: PatchError| error.status().message;
    let of = |name: &str, ty: &str| {
        format!("error decoding patch: json: cannot unmarshal {name} into Go value of type {ty}")
    };
    let rows = [("5", "number"), ("[]", "array"), ("\"x\"", "string")];
    for (patch, name) in rows {
        let error = merge_patch(&current, patch.as_bytes()).unwrap_err();
        assert_eq!(text(error), of(name, "map[string]interface {}"));
    }
    assert_eq!(text(merge_patch(&current, b"null").unwrap_err()), "Invalid JSON Patch");
    assert_eq!(text(json_patch(&current, b"{}").unwrap_err()), of("object", "[]handlers.jsonPatchOp"));
    assert_eq!(json_patch(&current, b"null").unwrap(), current);
}
