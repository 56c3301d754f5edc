//! Field sets: the published test cases of structured-merge-diff, and algebraic laws of sets.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Parses a path in the form `f:a f:b k:{"x":1}`, because upstream's printed paths cannot be parsed.
fn path(text: &str) -> Vec<PathElement> {
    text.split(' ').map(|step| PathElement::parse(step).unwrap().unwrap()).collect()
}

fn set(paths: &[&str]) -> FieldSet {
    let mut set = FieldSet::default();
    for text in paths {
        set.insert(&path(text));
    }
    set
}

fn printed(set: &FieldSet) -> Vec<String> {
    let mut paths = Vec::new();
    set.visit(&mut |path| paths.push(print_path(path)));
    paths
}

#[test]
fn path_elements_round_trip() {
    let steps = [
        "i:0",
        "i:1234",
        "f:",
        "f:spec",
        "f:more-complicated-string",
        "k:{\"name\":\"my-container\"}",
        "k:{\"port\":8080,\"protocol\":\"TCP\"}",
        "k:{\"optionalField\":null}",
        "k:{\"jsonField\":{\"A\":1,\"B\":null,\"C\":\"D\",\"E\":{\"F\":\"G\"}}}",
        "k:{\"listField\":[\"1\",\"2\",\"3\"]}",
        "v:null",
        "v:\"some-string\"",
        "v:1234",
        "v:{\"some\":\"json\"}",
        "v:\"\\u003ca\\u0026b\\u003e\"",
    ];
    for step in steps {
        let element = PathElement::parse(step).unwrap().unwrap();
        assert_eq!(element.to_json_key(), step);
    }
    for ignored in ["x:anything", "n:5"] {
        assert_eq!(PathElement::parse(ignored), Ok(None));
    }
    for wrong in
        ["", "f", "nocolon", "i:index is not a number", "i:1.23", "v:invalid json", "k:invalid json", "k:[]"]
    {
        assert!(PathElement::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn path_elements_are_printed_as_upstream_does() {
    let rows = [
        ("f:a f:b", ".a.b"),
        ("k:{\"name\":\"x\"} f:image", "[name=\"x\"].image"),
        ("k:{\"b\":2,\"a\":1}", "[a=1,b=2]"),
        ("f:finalizers v:\"a/b\"", ".finalizers[=\"a/b\"]"),
        ("v:true", "[=true]"),
        ("i:3", "[3]"),
    ];
    for (text, want) in rows {
        assert_eq!(print_path(&path(text).iter().collect::<Vec<_>>()), want);
    }
}

#[test]
fn path_elements_are_ordered_by_kind() {
    let order = [
        "f:a",
        "f:b",
        "k:{\"a\":1}",
        "k:{\"a\":1,\"b\":1}",
        "k:{\"a\":2}",
        "k:{\"b\":1}",
        "v:1",
        "v:1.5",
        "v:2",
        "v:\"a\"",
        "v:true",
        "i:1",
        "i:2",
    ];
    let elements: Vec<PathElement> = order.iter().map(|t| PathElement::parse(t).unwrap().unwrap()).collect();
    assert!(elements.is_sorted());
    let mut shuffled: Vec<PathElement> = elements.iter().rev().cloned().collect();
    shuffled.sort();
    assert_eq!(shuffled, elements);
}

#[test]
fn the_json_form_is_the_published_one() {
    let rows = [
        r#"{}"#,
        r#"{"f:a":{}}"#,
        r#"{"f:aaa":{},"f:bbb":{".":{},"f:ccc":{}},"k:{\"a\":1}":{"f:x":{}},"v:1":{},"i:2":{}}"#,
        r#"{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}"#,
    ];
    for text in rows {
        let json: Value = serde_json::from_str(text).unwrap();
        assert_eq!(FieldSet::from_json(&json).unwrap().to_json().to_string(), text);
    }
    // Unknown kinds of elements are dropped, null is a member, and the order is ignored.
    let rows = [
        (json!({"x:y": {}, "f:a": {}}), json!({"f:a": {}})),
        (json!({"f:a": null}), json!({"f:a": {}})),
        (json!({"f:b": {}, "f:a": {"f:d": {}, ".": {}}}), json!({"f:a": {".": {}, "f:d": {}}, "f:b": {}})),
        (json!({"f:a": {".": {}}}), json!({"f:a": {}})),
    ];
    for (json, want) in rows {
        assert_eq!(FieldSet::from_json(&json).unwrap().to_json().to_string(), want.to_string());
    }
    for wrong in [json!({"f:a": 1}), json!([]), json!({"f:a": {"f": {}}})] {
        assert!(FieldSet::from_json(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_level_is_visited_before_nested_levels() {
    let set = set(&["f:b f:c", "f:a f:x f:y", "f:a f:z", "f:d"]);
    assert_eq!(printed(&set), [".d", ".a.z", ".a.x.y", ".b.c"]);
}

#[test]
fn unions_and_differences_match_the_published_cases() {
    let a = set(&["f:a", "f:b f:c", "f:d f:e", "k:{\"n\":1}", "k:{\"n\":1} f:x"]);
    let b = set(&["f:b f:c", "f:d", "k:{\"n\":1} f:x", "f:z"]);
    assert_eq!(printed(&a.intersection(&b)), [".b.c", "[n=1].x"]);
    assert_eq!(printed(&a.difference(&b)), [".a", "[n=1]", ".d.e"]);
    assert_eq!(printed(&a.recursive_difference(&b)), [".a", "[n=1]"]);
    assert_eq!(printed(&a.union(&b)), [".a", ".d", ".z", "[n=1]", ".b.c", ".d.e", "[n=1].x"]);
    assert!(a.difference(&a).is_empty());
    assert_eq!(a.recursive_difference(&set(&["f:a", "f:b", "f:d", "k:{\"n\":1}"])), FieldSet::default());
}

fn any_element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        "[a-c]".prop_map(|name| PathElement::field(&name)),
        (0_i64..3).prop_map(|n| PathElement::key(vec![("k".into(), json!(n))])),
        "[<x\"]".prop_map(|text| PathElement::Value(json!(text))),
        (0_i64..3).prop_map(PathElement::Index),
    ]
}

fn any_set() -> impl Strategy<Value = FieldSet> {
    prop::collection::vec(prop::collection::vec(any_element(), 1..4), 0..12).prop_map(|paths| {
        let mut set = FieldSet::default();
        for path in &paths {
            set.insert(path);
        }
        set
    })
}

proptest! {
    #[test]
    fn any_set_survives_its_json_form(set in any_set()) {
        prop_assert_eq!(FieldSet::from_json(&set.to_json()).unwrap(), set);
    }

    #[test]
    fn the_laws_of_sets_hold(a in any_set(), b in any_set(), c in any_set()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(a.union(&a), a.clone());
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.intersection(&b), a.difference(&a.difference(&b)));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert_eq!(a.union(&b).difference(&b), a.difference(&b));
        let (mut parted, mut children, mut joined) = (a.clone(), a.clone(), a.clone());
        parted.subtract(&b);
        children.subtract_recursive(&b);
        joined.extend(b.clone());
        prop_assert_eq!(parted, a.difference(&b));
        prop_assert_eq!(children, a.recursive_difference(&b));
        prop_assert_eq!(joined, a.union(&b));
        prop_assert!(a.recursive_difference(&b).difference(&a.difference(&b)).is_empty());
        let mut members = 0;
        a.visit(&mut |_| members += 1);
        let mut found = 0;
        a.visit(&mut |path| found += usize::from(a.contains(path)));
        prop_assert_eq!(members, found);
    }

    #[test]
    fn any_text_can_be_parsed_as_a_path_element(text in ".*") {
        let _ = PathElement::parse(&text);
    }
}

#[test]
fn numbers_near_the_limits_of_their_ranges_are_totally_ordered() {
    let numbers = [
        json!(i64::MAX),
        json!(i64::MAX - 1),
        json!(9_223_372_036_854_775_807.0),
        json!(9_223_372_036_854_775_808_u64),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(-9_223_372_036_854_775_808.0),
        json!(1e300),
        json!(-1e300),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(-0.0),
        json!(0),
        json!(-1.5),
        json!(-1),
    ];
    let compare = |a: &Value, b: &Value| PathElement::Value(a.clone()).cmp(&PathElement::Value(b.clone()));
    for a in &numbers {
        for b in &numbers {
            assert_eq!(compare(a, b), compare(b, a).reverse(), "{a} {b}");
            for c in &numbers {
                if compare(a, b).is_le() && compare(b, c).is_le() {
                    assert!(compare(a, c).is_le(), "{a} {b} {c}");
                }
            }
        }
    }
    assert!(compare(&json!(1), &json!(1.0)).is_eq() && compare(&json!(0), &json!(-0.0)).is_eq());
    assert!(compare(&json!(i64::MAX), &json!(9_223_372_036_854_775_808.0)).is_lt());
}
