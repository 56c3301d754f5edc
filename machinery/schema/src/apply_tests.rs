//! Published test cases of structured-merge-diff as tables: comparison, merge, removal, and sequences of writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use portico_machinery::Object;
use serde_json::{Value, json};

use super::*;
use crate::description;
use crate::fields::{PathElement, print_path};
use crate::model::TypeSetBuilder;

/// Schema with every shape, where each field is printed as it is.
fn schema() -> Schema {
    let mut types = json!({ "test": {
        "Root": { "fields": {
            "apiVersion": {"type": "string"},
            "numeric": {"type": "number"},
            "string": {"type": "string"},
            "bool": {"type": "boolean"},
            "any": {"type": "any"},
            "whole": {"type": "object"},
            "map": {"type": "{}string"},
            "atomicMap": {"type": "{}string", "atomic": true},
            "struct": {"type": "Struct"},
            "atomicStruct": {"type": "Struct", "atomic": true},
            "setStr": {"type": "[]string", "list": "set"},
            "setBool": {"type": "[]boolean", "list": "set"},
            "setNumeric": {"type": "[]number", "list": "set"},
            "atomicList": {"type": "[]string", "list": "atomic"},
            "plainList": {"type": "[]string"},
            "mergedList": {"type": "[]Element", "patch": "merge", "mergeKey": "key"},
            "list": {"type": "[]Element", "list": "map", "keys": ["key", "id"]},
            "named": {"type": "[]Named", "list": "map", "keys": ["name"]},
            "ports": {"type": "[]Port", "list": "map", "keys": ["port", "protocol"]},
            "maps": {"type": "{}Maps"},
        }},
        "Maps": { "is": "{}Maps" },
        "Struct": { "fields": {"name": {"type": "string"}, "value": {"type": "number"}, "below": {"type": "Struct"}}},
        "Element": { "fields": {
            "key": {"type": "string"}, "id": {"type": "number"}, "value": {"type": "{}string"},
            "bv": {"type": "boolean"}, "nv": {"type": "number"},
        }},
        "Named": { "fields": {
            "name": {"type": "string"}, "value": {"type": "number"}, "value2": {"type": "number"},
            "lists": {"type": "[]string", "list": "set"}, "maps": {"type": "{}string"},
        }},
        "Port": { "fields": {
            "port": {"type": "number"}, "protocol": {"type": "string", "openapiDefault": "TCP"}, "name": {"type": "string"},
        }},
    }});
    for ty in types["test"].as_object_mut().unwrap().values_mut() {
        for field in ty.get_mut("fields").and_then(Value::as_object_mut).into_iter().flatten() {
            field.1["emit"] = json!("pointer");
        }
    }
    let mut builder = TypeSetBuilder::default();
    let packages = serde_json::from_value(types).unwrap();
    description::add(&mut builder, &indexmap::IndexMap::default(), packages).unwrap();
    Schema::named(&Arc::new(builder.build().unwrap()), "test.Root").unwrap()
}

fn object(text: &str) -> Object {
    Object::from_json(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn printed(set: &FieldSet) -> String {
    let mut paths = Vec::new();
    set.visit(&mut |path| paths.push(print_path(path)));
    paths.sort();
    paths.join(" ")
}

#[test]
fn objects_are_compared_as_published() {
    let rows = [
        // old, new, removed, modified, added
        (r#"{"string":"foo","whole":1}"#, r#"{"string":"foo","whole":1}"#, "", "", ""),
        (r#"{"whole":{}}"#, r#"{"whole":1}"#, "", ".whole", ""),
        (r#"{"whole":1}"#, r#"{"whole":{"a":{"b":"c"}}}"#, "", ".whole", ""),
        (r#"{"string":"foo"}"#, r#"{"bool":true}"#, ".string", "", ".bool"),
        (r#"{"string":"foot"}"#, r#"{"string":"foo","bool":true}"#, "", ".string", ".bool"),
        (r#"{"numeric":1}"#, r#"{"numeric":1.0}"#, "", "", ""),
        (r#"{"numeric":1}"#, r#"{"numeric":3.14159}"#, "", ".numeric", ""),
        (r#"{}"#, r#"{"map":{}}"#, "", "", ".map"),
        (r#"{"map":null}"#, r#"{"map":{}}"#, "", ".map", ""),
        (r#"{"map":{"a":"b"}}"#, r#"{"map":{"a":"c","d":"e"}}"#, "", ".map.a", ".map.d"),
        (r#"{}"#, r#"{"map":{"a":"b"}}"#, "", "", ".map .map.a"),
        (r#"{"struct":{}}"#, r#"{"struct":null}"#, "", ".struct", ""),
        (r#"{"struct":{"name":"a"}}"#, r#"{"struct":{"name":"a","below":{}}}"#, "", "", ".struct.below"),
        (r#"{"atomicStruct":{"name":"a"}}"#, r#"{"atomicStruct":{"name":"b"}}"#, "", ".atomicStruct", ""),
        (r#"{"atomicMap":{"a":"b"}}"#, r#"{"atomicMap":{}}"#, "", ".atomicMap", ""),
        (r#"{"atomicList":["a"]}"#, r#"{"atomicList":["a","a"]}"#, "", ".atomicList", ""),
        (r#"{"plainList":["a"]}"#, r#"{"plainList":["b"]}"#, "", ".plainList", ""),
        (r#"{"plainList":[]}"#, r#"{}"#, ".plainList", "", ""),
        (r#"{"maps":{"a":{}}}"#, r#"{"maps":{"b":{}}}"#, ".maps.a", "", ".maps.b"),
        (r#"{"maps":{"a":{"b":{"c":{}}}}}"#, r#"{"maps":{"a":{"b":{}}}}"#, ".maps.a.b.c", "", ""),
        (r#"{"setStr":["a","b"]}"#, r#"{"setStr":["b","c"]}"#, ".setStr[=\"a\"]", "", ".setStr[=\"c\"]"),
        (
            r#"{"setNumeric":[1,2,3.14159]}"#,
            r#"{"setNumeric":[1,2,3]}"#,
            ".setNumeric[=3.14159]",
            "",
            ".setNumeric[=3]",
        ),
        (r#"{"setBool":[true]}"#, r#"{"setBool":[false]}"#, ".setBool[=true]", "", ".setBool[=false]"),
        (r#"{"setStr":["a","a"]}"#, r#"{"setStr":["a"]}"#, ".setStr[=\"a\"]", "", ".setStr[=\"a\"]"),
        (r#"{"setStr":["a","a"]}"#, r#"{"setStr":["a","a","a"]}"#, "", ".setStr[=\"a\"]", ""),
        (
            r#"{"list":[{"key":"a","id":1,"nv":2}]}"#,
            r#"{"list":[{"key":"a","id":1,"nv":3,"bv":true},{"key":"a","id":2}]}"#,
            "",
            ".list[id=1,key=\"a\"].nv",
            ".list[id=1,key=\"a\"].bv .list[id=2,key=\"a\"] .list[id=2,key=\"a\"].id .list[id=2,key=\"a\"].key",
        ),
        (
            r#"{"mergedList":[{"key":"a"}]}"#,
            r#"{"mergedList":[{"key":"a","nv":1}]}"#,
            "",
            "",
            ".mergedList[key=\"a\"].nv",
        ),
        (
            r#"{"ports":[{"port":80}]}"#,
            r#"{"ports":[{"port":80,"protocol":"TCP"}]}"#,
            "",
            "",
            ".ports[port=80,protocol=\"TCP\"].protocol",
        ),
        // The shape of untyped values is deduced: maps by key, lists as a whole.
        (r#"{"any":{"a":{}}}"#, r#"{"any":{"a":{"b":{}}}}"#, "", "", ".any.a.b"),
        (r#"{"any":{"a":null}}"#, r#"{"any":{"a":{"b":{}}}}"#, "", "", ".any.a.b"),
        (r#"{"any":{"a":{"b":{}}}}"#, r#"{"any":{"a":null}}"#, ".any.a.b", "", ""),
        (r#"{"any":{"a":[]}}"#, r#"{"any":{"a":["b"]}}"#, "", ".any.a", ""),
        (r#"{"any":{"a":null}}"#, r#"{"any":{"a":"b"}}"#, "", ".any.a", ""),
        (r#"{"any":{"a":{"b":{}}}}"#, r#"{"any":{"a":["b"]}}"#, ".any.a.b", ".any.a", ""),
        (r#"{"any":{"a":"b"}}"#, r#"{"any":{"a":{"b":{}}}}"#, "", ".any.a", ".any.a.b"),
        (r#"{"any":"b"}"#, r#"{"any":["b"]}"#, "", ".any", ""),
    ];
    let schema = schema();
    for (old, new, removed, modified, added) in rows {
        let (old, new) = (object(old), object(new));
        let got = schema.compare_raw(&old, &new).unwrap();
        let got = (printed(&got.removed), printed(&got.modified), printed(&got.added));
        assert_eq!(got, (removed.into(), modified.into(), added.into()), "{old:?} {new:?}");
        // In the opposite direction, added fields are removed fields.
        let back = schema.compare_raw(&new, &old).unwrap();
        let back = (printed(&back.removed), printed(&back.modified), printed(&back.added));
        assert_eq!(back, (added.into(), modified.into(), removed.into()), "{new:?} {old:?}");
    }
}

#[test]
fn configurations_are_merged_as_published() {
    let rows = [
        (r#"{"whole":{}}"#, r#"{"whole":1}"#, r#"{"whole":1}"#),
        (r#"{"string":"a"}"#, r#"{"bool":true}"#, r#"{"string":"a","bool":true}"#),
        (r#"{}"#, r#"{"map":null}"#, r#"{"map":null}"#),
        (r#"{"map":{}}"#, r#"{"map":null}"#, r#"{"map":null}"#),
        (r#"{"map":{"a":"b"}}"#, r#"{"map":null}"#, r#"{"map":{"a":"b"}}"#),
        (r#"{"struct":null}"#, r#"{"struct":{}}"#, r#"{"struct":{}}"#),
        (r#"{"plainList":null}"#, r#"{"plainList":[]}"#, r#"{"plainList":[]}"#),
        (r#"{"atomicList":["a","a"]}"#, r#"{"atomicList":["a"]}"#, r#"{"atomicList":["a"]}"#),
        (r#"{"any":{"a":1}}"#, r#"{"any":{"b":2}}"#, r#"{"any":{"a":1,"b":2}}"#),
        (r#"{"any":{"a":1}}"#, r#"{"any":[1]}"#, r#"{"any":[1]}"#),
        (
            r#"{"list":[{"key":"a","id":1,"bv":true},{"key":"b","id":2},{"key":"a","id":1,"bv":false,"nv":2}]}"#,
            r#"{"list":[{"key":"a","id":1,"nv":3},{"key":"c","id":3},{"key":"b","id":2}]}"#,
            r#"{"list":[{"key":"a","id":1,"nv":3},{"key":"c","id":3},{"key":"b","id":2}]}"#,
        ),
        (
            r#"{"list":[{"key":"a","id":1,"nv":1},{"key":"a","id":1,"nv":2}]}"#,
            r#"{"list":[]}"#,
            r#"{"list":[{"key":"a","id":1,"nv":1},{"key":"a","id":1,"nv":2}]}"#,
        ),
        (
            r#"{"list":[{"key":"a","id":1},{"key":"b","id":2},{"key":"c","id":3}]}"#,
            r#"{"list":[{"key":"c","id":3},{"key":"a","id":1}]}"#,
            r#"{"list":[{"key":"b","id":2},{"key":"c","id":3},{"key":"a","id":1}]}"#,
        ),
        (
            r#"{"ports":[{"port":80,"name":"x"}]}"#,
            r#"{"ports":[{"port":80,"protocol":"UDP"},{"port":80,"protocol":"TCP"}]}"#,
            r#"{"ports":[{"port":80,"protocol":"UDP"},{"port":80,"name":"x","protocol":"TCP"}]}"#,
        ),
    ];
    let schema = schema();
    for (live, config, want) in rows {
        let merged = schema.merge_applied(&object(live), &object(config)).unwrap();
        assert_eq!(merged, object(want), "{live} {config}");
    }
}

#[test]
fn merged_sets_respect_the_order_of_both_sides() {
    let rows = [
        ("a b c", "a b", "a b c"),
        ("a b", "a b c", "a b c"),
        ("a b c", "", "a b c"),
        ("", "a b c", "a b c"),
        ("a b", "b a", "b a"),
        ("a b c", "d e f", "a b c d e f"),
        ("a b c", "c d e f", "a b c d e f"),
        ("a b c g f", "c d e f", "a b c g d e f"),
        ("c d e f", "a c e", "a c d e f"),
        ("a b c x y z", "d e f x y z", "a b c d e f x y z"),
        ("c a g f", "c f a g", "c f a g"),
        ("a b c d", "d e f a", "b c d e f a"),
        ("c d e f g h i j", "2 h 3 e 4 k l", "c d f g 2 h i j 3 e 4 k l"),
        ("a b c d e f g h i j", "1 b 2 h 3 e 4 k l", "a 1 b c d f g 2 h i j 3 e 4 k l"),
        ("a b b", "c", "a b b c"),
        ("a b b", "b", "a b"),
        ("a b c d e c", "1 b 2 e d", "a 1 b c 2 e c d"),
        ("a b c d e c", "1 b 2 c e d", "a 1 b 2 c e d"),
        ("a a b b", "b c d", "a a b c d"),
        ("c a g f c a", "c f a g", "c f a g"),
    ];
    let schema = schema();
    let set = |words: &str| {
        let words: Vec<&str> = words.split(' ').filter(|w| !w.is_empty()).collect();
        Object::from_json(json!({ "setStr": words }).to_string().as_bytes()).unwrap()
    };
    for (live, config, want) in rows {
        let merged = schema.merge_applied(&set(live), &set(config)).unwrap();
        assert_eq!(merged, set(want), "{live} + {config}");
    }
}

#[test]
fn field_sets_contain_leaves_and_elements() {
    let rows = [
        (r#"{"string":"a","numeric":null}"#, ".numeric .string"),
        (r#"{"struct":{"name":"a"},"map":{"a":"b"}}"#, ".map.a .struct.name"),
        (r#"{"struct":{},"map":null,"setStr":[]}"#, ".map .struct"),
        (
            r#"{"atomicStruct":{"name":"a"},"atomicList":["a"],"whole":{"a":{}}}"#,
            ".atomicList .atomicStruct .whole",
        ),
        (r#"{"setStr":["a","b"]}"#, ".setStr[=\"a\"] .setStr[=\"b\"]"),
        (r#"{"any":{"a":{"b":[1]}}}"#, ".any.a .any.a.b"),
        (
            r#"{"ports":[{"port":80}]}"#,
            ".ports[port=80,protocol=\"TCP\"] .ports[port=80,protocol=\"TCP\"].port",
        ),
    ];
    let schema = schema();
    for (config, want) in rows {
        assert_eq!(printed(&schema.fields_of(&object(config))), want, "{config}");
    }
}

#[test]
fn type_mismatches_are_rejected_with_their_path() {
    let rows = [
        (r#"{"colour":1}"#, ".colour: field not declared in schema"),
        (r#"{"struct":{"below":{"x":1}}}"#, ".struct.below.x: field not declared in schema"),
        (r#"{"string":1}"#, ".string: expected string, got &value.valueUnstructured{Value:1}"),
        (r#"{"map":["a"]}"#, ".map: expected map, got &{[a]}"),
        (
            r#"{"setStr":"a","numeric":"1","struct":{"colour":1}}"#,
            "errors:\n  .setStr: expected list, got &{a}\n  .numeric: expected numeric (int or float), got string\n  \
             .struct.colour: field not declared in schema",
        ),
        (r#"{"setStr":["a","a"]}"#, ".setStr: duplicate entries for key [=\"a\"]"),
        (
            r#"{"setStr":[null]}"#,
            ".setStr: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            r#"{"list":[{"nv":1}]}"#,
            ".list: element 0: associative list with keys has an element that omits all key fields [\"key\", \"id\"] (and doesn't have default values for any key fields)",
        ),
        (
            r#"{"ports":[{"port":1},{"port":1,"protocol":"TCP"}]}"#,
            ".ports: duplicate entries for key [port=1,protocol=\"TCP\"]",
        ),
        (r#"{"list":[{"key":"a","x":1}]}"#, ".list[key=\"a\"].x: field not declared in schema"),
    ];
    let schema = schema();
    for (config, want) in rows {
        assert_eq!(schema.check_applied(&object(config)).unwrap_err().to_string(), want);
    }
}

/// Version `v1`, and a version `v2` that differs only in its name.
struct SingleSchema(Schema);

impl Versions for SingleSchema {
    fn schema(&self, version: &str) -> Option<&Schema> {
        matches!(version, "v1" | "v2").then_some(&self.0)
    }

    fn convert(&self, object: &Object, _from: &str, to: &str) -> Result<Object, ConversionError> {
        self.schema(to).map(|_| object.clone()).ok_or(ConversionError::VersionRemoved)
    }

    fn filter(&self, _version: &str) -> &FieldFilter {
        static ALL: std::sync::LazyLock<FieldFilter> = std::sync::LazyLock::new(FieldFilter::default);
        &ALL
    }
}

/// Executes a history: `apply m v1 {...}`, `force m v1 {...}`, `update m v1 {...}`; a following line `! m.path` lists the
/// expected conflicts. Returns the object, and the fields of each manager.
fn replay_history(history: &[&str]) -> (Object, BTreeMap<String, String>) {
    let versions = SingleSchema(schema());
    let (mut live, mut owners) = (Object::default(), FieldOwners::<String>::new());
    let mut lines = history.iter().peekable();
    while let Some(line) = lines.next() {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().unwrap();
        let (verb, manager, version, body) = (word(), word().to_owned(), word(), object(word()));
        let expected = lines.next_if(|line| line.starts_with('!')).map(|line| line[2..].to_owned());
        let mut attempt = owners.clone();
        let conflicts = match verb {
            "update" => {
                let changed = versions.0.compare(&live, &body).unwrap();
                update_owners(&versions, version, (&live, &body), &changed, &mut attempt).unwrap();
                let set = changed.modified.union(&changed.added);
                let value = attempt.remove(&manager).map(|value| value.set).unwrap_or_default();
                let set = value.union(&set);
                if !set.is_empty() {
                    attempt.insert(manager, OwnedFields { set, version: version.into(), applied: false });
                }
                live = body;
                None
            }
            _ => {
                versions.0.check_applied(&body).unwrap();
                match apply(&versions, version, (&live, &body), &mut attempt, &manager, verb == "force") {
                    Ok(new) => {
                        live = new.unwrap_or(live);
                        None
                    }
                    Err(ApplyError::Conflicts(Conflicts(sets))) => {
                        let one = |(manager, set): &(String, FieldSet)| format!("{manager}{}", printed(set));
                        Some(sets.iter().map(one).collect::<Vec<_>>().join(" "))
                    }
                    Err(other) => panic!("{other:?}"),
                }
            }
        };
        assert_eq!(conflicts, expected, "{line}");
        if conflicts.is_none() {
            owners = attempt;
        }
    }
    (live, owners.iter().map(|(manager, owned)| (manager.clone(), printed(&owned.set))).collect())
}

/// Sequence of writes, the resulting object, and the fields of each manager.
type History = (&'static [&'static str], &'static str, &'static [(&'static str, &'static str)]);

/// Published histories.
const HISTORIES: &[History] = &[
    // Leaves.
    (
        &[
            r#"apply d v1 {"numeric":1,"string":"s"}"#,
            r#"apply d v1 {"numeric":2,"string":"n","bool":false}"#,
        ],
        r#"{"numeric":2,"string":"n","bool":false}"#,
        &[("d", ".bool .numeric .string")],
    ),
    (
        &[r#"apply d v1 {"numeric":1,"string":"s","bool":true}"#, r#"apply d v1 {"string":"n"}"#],
        r#"{"string":"n"}"#,
        &[("d", ".string")],
    ),
    (
        &[
            r#"apply d v1 {"numeric":1,"string":"s"}"#,
            r#"update c v1 {"numeric":1,"string":"c","bool":true}"#,
            r#"apply d v1 {"numeric":2,"string":"u"}"#,
            r#"! c.string"#,
            r#"force d v1 {"numeric":2,"string":"u"}"#,
        ],
        r#"{"numeric":2,"string":"u","bool":true}"#,
        &[("c", ".bool"), ("d", ".numeric .string")],
    ),
    (
        &[
            r#"apply d v1 {"numeric":1,"string":"s","bool":false}"#,
            r#"update c v1 {"numeric":1,"string":"c","bool":true}"#,
            r#"apply d v1 {}"#,
        ],
        r#"{"string":"c","bool":true}"#,
        &[("c", ".bool .string")],
    ),
    // Sets.
    (
        &[r#"apply d v1 {"setStr":["a","c"]}"#, r#"apply d v1 {"setStr":["a","b","c","d"]}"#],
        r#"{"setStr":["a","b","c","d"]}"#,
        &[("d", r#".setStr[="a"] .setStr[="b"] .setStr[="c"] .setStr[="d"]"#)],
    ),
    (
        &[
            r#"apply d v1 {"setStr":["a","b"]}"#,
            r#"update c v2 {"setStr":["a","b","c"]}"#,
            r#"apply d v1 {"setStr":["a"]}"#,
        ],
        r#"{"setStr":["a","c"]}"#,
        &[("c", r#".setStr[="c"]"#), ("d", r#".setStr[="a"]"#)],
    ),
    (
        &[r#"update u v1 {"setNumeric":[1,1,3,4]}"#],
        r#"{"setNumeric":[1,1,3,4]}"#,
        &[("u", ".setNumeric .setNumeric[=1] .setNumeric[=3] .setNumeric[=4]")],
    ),
    (
        &[
            r#"update u v1 {"setNumeric":[1,1,3,4]}"#,
            r#"apply a v1 {"setNumeric":[1]}"#,
            "! u.setNumeric[=1]",
            r#"force a v1 {"setNumeric":[1]}"#,
        ],
        r#"{"setNumeric":[1,3,4]}"#,
        &[("a", ".setNumeric[=1]"), ("u", ".setNumeric .setNumeric[=3] .setNumeric[=4]")],
    ),
    (
        &[r#"update one v1 {"setNumeric":[1,3]}"#, r#"update two v1 {"setNumeric":[1,1,3]}"#],
        r#"{"setNumeric":[1,1,3]}"#,
        &[("one", ".setNumeric .setNumeric[=3]"), ("two", ".setNumeric[=1]")],
    ),
    // Lists by key.
    (
        &[
            r#"apply one v1 {"named":[{"name":"a"},{"name":"b"},{"name":"c"}]}"#,
            r#"apply two v2 {"named":[{"name":"c"},{"name":"d"}]}"#,
            r#"apply one v1 {"named":[{"name":"a"}]}"#,
        ],
        r#"{"named":[{"name":"a"},{"name":"c"},{"name":"d"}]}"#,
        &[
            ("one", r#".named[name="a"] .named[name="a"].name"#),
            ("two", r#".named[name="c"] .named[name="c"].name .named[name="d"] .named[name="d"].name"#),
        ],
    ),
    (
        &[
            r#"apply one v1 {"named":[{"name":"a","value":0}]}"#,
            r#"apply two v2 {"named":[{"name":"a","value":1}]}"#,
            r#"! one.named[name="a"].value"#,
            r#"apply two v2 {"named":[{"name":"a","value":0}]}"#,
        ],
        r#"{"named":[{"name":"a","value":0}]}"#,
        &[
            ("one", r#".named[name="a"] .named[name="a"].name .named[name="a"].value"#),
            ("two", r#".named[name="a"] .named[name="a"].name .named[name="a"].value"#),
        ],
    ),
    (
        &[
            r#"apply d v1 {"named":[{"name":"a","lists":["b","c"]}]}"#,
            r#"apply d v1 {"named":[{"name":"a","lists":["a","c"]}]}"#,
        ],
        r#"{"named":[{"name":"a","lists":["a","c"]}]}"#,
        &[(
            "d",
            r#".named[name="a"] .named[name="a"].lists[="a"] .named[name="a"].lists[="c"] .named[name="a"].name"#,
        )],
    ),
    // Structs and maps.
    (&[r#"apply d v1 {"struct":{"name":"a","value":1}}"#, r#"apply d v1 {}"#], r#"{}"#, &[]),
    (
        &[
            r#"apply d v1 {"struct":{"name":"a"}}"#,
            r#"update c v1 {"struct":{"name":"a","value":1}}"#,
            r#"apply d v1 {}"#,
        ],
        r#"{"struct":{"value":1}}"#,
        &[("c", ".struct.value")],
    ),
    (
        &[
            r#"apply d v1 {"struct":{"name":"a"}}"#,
            r#"update c v1 {"struct":{"name":"b","value":1}}"#,
            r#"apply d v1 {"struct":null}"#,
        ],
        r#"{"struct":{"name":"b","value":1}}"#,
        &[("c", ".struct.name .struct.value"), ("d", ".struct")],
    ),
    (
        &[r#"apply d v1 {"maps":{"a":{"b":{"c":null}}}}"#, r#"apply d v1 {"maps":{"a":{"d":{"c":null}}}}"#],
        r#"{"maps":{"a":{"d":{"c":null}}}}"#,
        &[("d", ".maps.a .maps.a.d .maps.a.d.c")],
    ),
    (
        &[
            r#"apply one v1 {"any":{"a":1,"b":{"c":2}}}"#,
            r#"apply two v1 {"any":{"b":{"d":3}}}"#,
            r#"apply one v1 {"any":{"a":1}}"#,
        ],
        r#"{"any":{"a":1,"b":{"d":3}}}"#,
        &[("one", ".any.a"), ("two", ".any.b .any.b.d")],
    ),
];

#[test]
fn histories_have_the_published_results() {
    for (history, want, owners) in HISTORIES {
        let (live, got) = replay_history(history);
        assert_eq!(live, object(want), "{history:?}");
        let owners: BTreeMap<String, String> =
            owners.iter().map(|(m, set)| ((*m).to_owned(), (*set).to_owned())).collect();
        assert_eq!(got, owners, "{history:?}");
    }
}

#[test]
fn managers_of_removed_versions_are_dropped() {
    let versions = SingleSchema(schema());
    let mut owners = FieldOwners::from([(
        "old".to_owned(),
        OwnedFields { set: FieldSet::from_dotted_paths(["string"]), version: "v0".into(), applied: true },
    )]);
    let (live, config) = (object(r#"{"string":"a"}"#), object(r#"{"string":"b"}"#));
    apply(&versions, "v1", (&live, &config), &mut owners, &"new".to_owned(), false).unwrap();
    assert_eq!(owners.keys().collect::<Vec<_>>(), ["new"]);
}

#[test]
fn owners_inside_a_newly_atomic_value_own_all_of_it() {
    let versions = SingleSchema(schema());
    let set = |paths: &[&[&str]]| {
        let mut set = FieldSet::default();
        for path in paths {
            set.insert(&path.iter().map(|p| PathElement::parse(p).unwrap().unwrap()).collect::<Vec<_>>());
        }
        set
    };
    let owned = OwnedFields {
        set: set(&[
            &["f:atomicList", "v:\"a\""],
            &["f:atomicMap", "f:x"],
            &["f:atomicMap"],
            &["f:whole", "f:a", "f:b"],
            &["f:any", "f:a"],
            &["f:gone", "f:a"],
        ]),
        version: "v1".into(),
        applied: true,
    };
    let mut owners = FieldOwners::from([("m".to_owned(), owned)]);
    let state = object("{}");
    update_owners(&versions, "v1", (&state, &state), &Comparison::default(), &mut owners).unwrap();
    assert_eq!(printed(&owners["m"].set), ".any.a .atomicList .atomicMap .gone.a .whole");
}

#[test]
fn filters_drop_or_keep_fields_below_their_paths() {
    let set = FieldSet::from_dotted_paths(["spec", "spec.a", "spec.b.c", "status.x", "metadata.labels"]);
    let drop = FieldFilter::Drop(FieldSet::from_dotted_paths(["spec", "metadata.labels"]));
    assert_eq!(printed(&drop.apply(set.clone())), ".status.x");
    let keep = FieldFilter::from_kept_paths(["spec.b", "status.x"]);
    assert_eq!(printed(&keep.apply(set.clone())), ".spec .spec.b.c .status.x");
    let any = FieldFilter::from_kept_paths(["spec.*.c"]);
    assert_eq!(printed(&any.apply(set.clone())), ".spec .spec.a .spec.b.c");
    assert_eq!(FieldFilter::default().apply(set.clone()), set);
}
