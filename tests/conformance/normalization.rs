//! Replaces values that differ between two correct servers by placeholders: uids, times, revisions, ports, keys of the fixture.

use std::collections::HashSet;
use std::sync::LazyLock;

use portico_machinery::digest::sha256_hex;
use regex::Regex;
use serde_json::{Map, Value};

use crate::paths;
use crate::step::{Compare, Step};

static UUID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").unwrap());
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})")
        .unwrap()
});
static AGE: LazyLock<Regex> = LazyLock::new(|| Regex::new("^([0-9]+[smhdy])+$|^<unknown>$").unwrap());
static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"127\.0\.0\.1:[0-9]+|localhost:[0-9]+").unwrap());
/// A revision in an object inside a message.
static REVISION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(resourceVersion\\*":\\*")[0-9]+"#).unwrap());
static FINGERPRINT: LazyLock<Regex> = LazyLock::new(|| Regex::new("X509SHA256=[0-9a-f]{64}").unwrap());

/// Number of digits of a recorded digest.
const DIGITS: usize = 8;

/// Returns the placeholder of a field whose text varies.
fn placeholder(field: &str) -> Option<&'static str> {
    Some(match field {
        "uid" => "<uid>",
        "resourceVersion" => "<rv>",
        "continue" => "<continue>",
        "creationTimestamp" | "time" | "lastTransitionTime" | "deletionTimestamp" | "lastUpdateTime"
        | "lastProbeTime" | "renewTime" | "acquireTime" => "<time>",
        _ => return None,
    })
}

/// Returns the comparable body. `names` are texts of the fixture with their placeholders.
pub fn body(mut body: Value, step: &Step, names: &[(String, String)]) -> Value {
    replace(&mut body, "", names);
    order_causes(&mut body);
    if body.is_object() || body.is_array() {
        body = shape(body, step);
    }
    hide_addresses(&mut body);
    body
}

/// Returns the comparable header.
pub fn header(value: Option<&str>) -> Value {
    value.map_or(Value::Null, |value| {
        let mut value = Value::from(value);
        replace(&mut value, "", &[]);
        hide_addresses(&mut value);
        value
    })
}

fn replace(value: &mut Value, field: &str, names: &[(String, String)]) {
    match value {
        Value::Object(fields) => {
            if fields.get("kty").is_some_and(|kty| kty == "EC") {
                // The numbers of the fixture's key vary.
                ["kid", "x", "y"]
                    .into_iter()
                    .for_each(|field| drop(fields.insert(field.into(), "<key>".into())));
            }
            fields.iter_mut().for_each(|(field, value)| replace(value, field, names));
        }
        Value::Array(items) => {
            for item in items {
                // Name and content of a column are compared, but not its description.
                if field == "columnDefinitions" && item.get("description").is_some() {
                    item["description"] = "<words>".into();
                }
                replace(item, if field == "cells" { field } else { "" }, names);
            }
        }
        Value::String(text) => *text = replace_text(text, field, names),
        _ => {}
    }
}

fn replace_text(text: &str, field: &str, names: &[(String, String)]) -> String {
    if let Some(word) = placeholder(field).filter(|_| !text.is_empty()) {
        return if field == "resourceVersion" && text == "0" { "0".to_owned() } else { word.to_owned() };
    }
    let text = UUID.replace_all(text, "<uid>");
    let text = TIME.replace_all(&text, "<time>");
    let text = REVISION.replace_all(&text, "$1<rv>");
    let mut text = FINGERPRINT.replace_all(&text, "X509SHA256=<hash>").into_owned();
    for (value, word) in names {
        text = text.replace(value, word);
    }
    if field == "cells" && AGE.is_match(&text) { "<age>".to_owned() } else { text }
}

/// Sorts a Status's causes, and the list of them in its message.
fn order_causes(body: &mut Value) {
    if body["kind"] != "Status" {
        return;
    }
    let Some(causes) = body.pointer_mut("/details/causes").and_then(Value::as_array_mut) else { return };
    if causes.len() < 2 {
        return;
    }
    causes.sort_by_cached_key(sorted);
    let reported = |cause: &Value, key: &str| cause.get(key).map_or_else(|| "None".to_owned(), paths::text);
    let list: Vec<String> = causes
        .iter()
        .map(|cause| format!("{}: {}", reported(cause, "field"), reported(cause, "message")))
        .collect();
    let head = body["message"].as_str().unwrap_or_default().split('[').next().unwrap_or_default().to_owned();
    body["message"] = format!("{head}{}", list.join(" | ")).into();
}

fn shape(mut body: Value, step: &Step) -> Value {
    for (path, key) in &step.sort {
        let key = key.as_str().unwrap_or_default();
        for position in paths::positions(&body, path) {
            if let Some(Value::Array(items)) = paths::get_mut(&mut body, &position) {
                items.sort_by_cached_key(|item| match item {
                    Value::Object(fields) if !key.is_empty() => {
                        sorted(fields.get(key).unwrap_or(&Value::Null))
                    }
                    other => sorted(other),
                });
            }
        }
    }
    step.ignore.iter().for_each(|path| paths::remove(&mut body, path));
    step.digest.iter().for_each(|path| digest(&mut body, path));
    if step.only.is_empty() {
        return body;
    }
    let values = |path: &String| -> Value {
        paths::positions(&body, path)
            .iter()
            .filter_map(|position| paths::get(&body, position).cloned())
            .collect()
    };
    step.only.iter().map(|path| (path.clone(), values(path))).collect::<Map<_, _>>().into()
}

/// Replaces the values of a path by the first digits of their digest, independent of the order of fields.
fn digest(body: &mut Value, path: &str) {
    for position in paths::positions(body, path) {
        if let Some(part) = paths::get_mut(body, &position) {
            *part = sha256_hex(sorted(part).as_bytes())[..DIGITS].into();
        }
    }
}

/// Returns JSON with its fields sorted.
fn sorted(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    value.to_string()
}

fn hide_addresses(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let hidden = std::mem::take(fields).into_iter().map(|(field, mut value)| {
                hide_addresses(&mut value);
                (ADDRESS.replace_all(&field, "<address>").into_owned(), value)
            });
            *fields = hidden.collect();
        }
        Value::Array(items) => items.iter_mut().for_each(hide_addresses),
        Value::String(text) => *text = ADDRESS.replace_all(text, "<address>").into_owned(),
        _ => {}
    }
}

/// Returns the lines in which two responses differ, formatted for reading.
pub fn difference(want: &Value, got: &Value) -> String {
    let lines = |value: &Value| {
        let mut value = value.clone();
        value.sort_all_objects();
        serde_json::to_string_pretty(&value).unwrap()
    };
    let (want, got) = (lines(want), lines(got));
    let (wanted, found): (HashSet<&str>, HashSet<&str>) = (want.lines().collect(), got.lines().collect());
    let missing = want.lines().filter(|line| !found.contains(line));
    let added = got.lines().filter(|line| !wanted.contains(line));
    let reported = missing.map(|line| format!("  - {line}")).chain(added.map(|line| format!("  + {line}")));
    let reported: Vec<String> = reported.take(40).collect();
    if reported.is_empty() {
        format!("  the same lines in another order:\n{got}")
    } else {
        reported.join("\n")
    }
}

/// Returns true if a step's response is compared.
pub fn is_compared(step: &Step) -> bool {
    step.compare != Compare::None
}

#[test]
fn variable_values_become_placeholders() {
    let input = serde_json::json!({
        "metadata": {"uid": "a", "resourceVersion": "7", "name": "x"},
        "list": {"resourceVersion": "0"},
        "message": "at 2026-01-02T03:04:05Z on 127.0.0.1:4443",
        "columnDefinitions": [{"name": "Age", "description": "how old"}],
        "rows": [{"cells": ["5m", "five"]}],
    });
    let want = serde_json::json!({
        "metadata": {"uid": "<uid>", "resourceVersion": "<rv>", "name": "x"},
        "list": {"resourceVersion": "0"},
        "message": "at <time> on <address>",
        "columnDefinitions": [{"name": "Age", "description": "<words>"}],
        "rows": [{"cells": ["<age>", "five"]}],
    });
    assert_eq!(body(input, &Step::default(), &[]), want);
}

#[test]
fn only_compared_parts_are_kept() {
    let input = serde_json::json!({"items": [{"n": "b", "x": 1}, {"n": "a", "x": 2}], "kind": "L"});
    let step: Step = serde_json::from_str(
        r#"{"sort": {"items": "n"}, "ignore": ["items.*.x"], "only": ["items", "none"]}"#,
    )
    .unwrap();
    let want = serde_json::json!({"items": [[{"n": "a"}, {"n": "b"}]], "none": []});
    assert_eq!(body(input, &step, &[]), want);
}
