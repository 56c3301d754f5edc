//! Permitted differences of two servers in a campaign: each is replaced by a placeholder on both sides. The campaign does not
//! detect differences in these values; docs/internals/conformance.md gives the reasons.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

/// Fields that a server may allocate, and signed values.
const ALLOCATED_FIELDS: [&str; 5] = ["clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort", "token"];

/// Patterns that are replaced in every text, in this order.
static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        // A revision within a text: YAML, or an object in a message.
        (r#"(resourceVersion[\\": ]{1,8})[0-9]+"#, "$1<rv>"),
        // Name of the volume that pods get for their service account.
        ("kube-api-access-[a-z0-9]{5}", "kube-api-access-<chosen>"),
        // Address that kube-apiserver advertises.
        (r"\b10\.255\.255\.1:[0-9]+", "<address>"),
        (r"\b10\.0\.[0-9]{1,3}\.[0-9]{1,3}\b", "<address>"),
        (r"((?:NodePort|nodePort)[\\: ]{1,4}|[0-9]:)3[0-2][0-9]{3}\b", "$1<port>"),
        (r"(?i)[0-9]{4}-[0-9]{2}-[0-9]{2}t[0-9]{2}:[0-9]{2}:[0-9]{2}z", "<time>"),
        // An invalid byte, which upstream keeps within a text.
        (r"\\+x[89a-f][0-9a-f]", "\u{fffd}"),
        // A continue token in the URL of a request.
        ("continue=[A-Za-z0-9_-]+", "continue=<continue>"),
        // Revisions in sentences.
        (r"(in record \(|current: )[0-9]+", "$1<rv>"),
        // A line of upstream's source.
        (r#" in scheme \\?"pkg/[a-z/]+\.go:[0-9]+\\?""#, ""),
        // A diff of Go structs as text.
        (r"(?s)\n(?:@@|- [a-zA-Z]+: ).*?( \| |$)", "$1"),
        // A list of such errors ends with the first of these, in the order of a Go map.
        (r"(?s)errors:\n.*field not declared in schema.*", ".<field>: field not declared in schema"),
        // The first of several unknown fields varies with the order of a Go map.
        (r"\.[^ ]+: field not declared in schema", ".<field>: field not declared in schema"),
    ]
    .into_iter()
    .map(|(pattern, word)| (Regex::new(pattern).unwrap(), word))
    .collect()
});
/// Go structs as values in a message.
static STRUCT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(Invalid|Unsupported|Duplicate) value: (?:[{\[]|null)"#).unwrap());
/// Result of a patch in a message, whose fields are not in the order of Go structs (docs/internals/conformance.md).
static PATCH_RESULT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"Invalid value: ("\{\\"(?:[^"\\]|\\.)*\}")"#).unwrap());
/// Errors of a typed configuration, in the order of a Go map.
static TYPED_ERRORS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?s)errors:\n(.*)$").unwrap());

/// Replaces the values that the server has chosen, and the name of the case.
pub fn replace(value: &mut Value, sent: Option<&Value>, name: &str) {
    match value {
        Value::Object(fields) => {
            let causes = fields.get("details").and_then(|details| details["causes"].as_array());
            if causes.is_some_and(|causes| causes.len() > 1) {
                // The message consists of the causes, which are compared separately.
                fields.insert("message".to_owned(), "<causes>".into());
            }
            for (field, value) in fields.iter_mut() {
                let sent_value = sent.and_then(|sent| sent.get(field));
                if ALLOCATED_FIELDS.contains(&field.as_str())
                    && sent_value.is_none_or(|sent_value| sent_value != value)
                {
                    *value = format!("<{field}>").into();
                } else {
                    replace(value, sent_value, name);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                replace(item, sent.and_then(|sent| sent.get(at)), name);
            }
        }
        Value::String(text) => *text = replace_text(text, name),
        _ => {}
    }
}

fn replace_text(text: &str, name: &str) -> String {
    let mut text = if name.is_empty() { text.to_owned() } else { text.replace(name, "<name>") };
    for (pattern, word) in &*PATTERNS {
        text = pattern.replace_all(&text, *word).into_owned();
    }
    let sorted = |found: &Captures<'_>| {
        let mut lines: Vec<&str> = found[1].lines().collect();
        lines.sort_unstable();
        format!("errors:\n{}", lines.join("\n"))
    };
    // YAML, in which upstream folds long lines.
    if text.starts_with("apiVersion: ") {
        text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    let text = PATCH_RESULT.replace_all(&text, |found: &Captures<'_>| {
        let json = serde_json::from_str::<String>(&found[1]).ok();
        let Some(mut object) = json.and_then(|json| serde_json::from_str::<Value>(&json).ok()) else {
            return found[0].to_owned();
        };
        object.sort_all_objects();
        format!("Invalid value: <patched {object}>")
    });
    without_structs(&TYPED_ERRORS.replace(&text, sorted))
}

/// Returns the text with `<struct>` for each Go struct.
fn without_structs(text: &str) -> String {
    let Some(found) = STRUCT.find(text) else { return text.to_owned() };
    let (before, rest) = text.split_at(found.start() + found.as_str().find(": ").unwrap_or_default() + 2);
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<serde::de::IgnoredAny>();
    let length = values.next().and_then(Result::ok).map_or(1, |_| values.byte_offset());
    format!("{before}<struct>{}", without_structs(&rest[length..]))
}

#[test]
fn values_that_servers_choose_become_placeholders_and_others_stay() {
    let body = serde_json::json!({
        "spec": {"clusterIP": "10.0.3.4", "nodePort": 30_123, "x": 1},
        "message": "spec: Invalid value: {\"A\":[1]}: is bad | a: Invalid value: \"{}\": too",
        "text": "errors:\n  b\n  a",
    });
    let want = serde_json::json!({
        "spec": {"clusterIP": "<clusterIP>", "nodePort": "<nodePort>", "x": 1},
        "message": "spec: Invalid value: <struct>: is bad | a: Invalid value: \"{}\": too",
        "text": "errors:\n  a\n  b",
    });
    let mut value = body;
    replace(&mut value, None, "");
    assert_eq!(value, want);
}
