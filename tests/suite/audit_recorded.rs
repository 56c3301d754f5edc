//! The audit log of about seventy kinds of requests, compared with kube-apiserver's (`.ci/record/audit` records it).

use http_body_util::Full;
use hyper::Request;
use portico_tests::Launch;
use serde_json::Value;

use crate::audit::{events, with_audit_log};

const POLICY: &str = include_str!("recorded/audit-policy.yaml");
const TABLE: &str = include_str!("recorded/audit.jsonl");
/// Fields with variable values.
const VARIABLE: [&str; 8] = [
    "auditID",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "time",
    "requestReceivedTimestamp",
    "stageTimestamp",
    // Descriptions of columns differ from upstream's.
    "description",
];

/// Returns the event without variable values.
fn normalize(mut event: Value) -> Value {
    if let Some(object) = event.get_mut("responseObject") {
        replace_ages(object);
    }
    without_variables(event)
}

/// Replaces the ages of objects in a Table, which are larger on a slow machine.
fn replace_ages(table: &mut Value) {
    let columns = table["columnDefinitions"].as_array();
    let age = columns.and_then(|columns| columns.iter().position(|column| column["name"] == "Age"));
    let (Some(age), Some(rows)) = (age, table["rows"].as_array_mut()) else { return };
    rows.iter_mut().for_each(|row| row["cells"][age] = Value::Null);
}

fn without_variables(mut event: Value) -> Value {
    match &mut event {
        Value::Object(members) => {
            members
                .retain(|key, _| !VARIABLE.contains(&key.as_str()) && !key.starts_with("apiserver.latency"));
            for (_, member) in members.iter_mut() {
                *member = without_variables(member.take());
            }
        }
        Value::Array(elements) => {
            elements.iter_mut().for_each(|element| *element = without_variables(element.take()))
        }
        _ => {}
    }
    event
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_is_recorded_as_kube_apiserver_records_it() {
    let rows: Vec<Value> = TABLE.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (launch, log) = with_audit_log(Launch::new(), POLICY);
    let portico = launch.start().await;
    let mut differences = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let (method, path) = row["send"].as_str().unwrap().split_once(' ').unwrap();
        let client = match row["as"].as_str() {
            Some("") => portico.anonymous(),
            who => portico.anonymous().as_user(who.unwrap_or("admin")),
        };
        let mut request =
            Request::builder().method(method).uri(path).header("audit-id", format!("audit-{at}"));
        let headers = row["headers"].as_object().into_iter().flatten();
        let named: Vec<(&str, &str)> =
            headers.map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();
        let has = |name: &str| named.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
        if !has("user-agent") {
            request = request.header("user-agent", "table");
        }
        if !row["body"].is_null() && !has("content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in &named {
            request = request.header(*name, *value);
        }
        let body = match &row["body"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            body => body.to_string(),
        };
        client.fetch(request.body(Full::new(body.into())).unwrap()).await.unwrap();
        let expected: Vec<Value> = row["events"].as_array().unwrap().iter().cloned().map(normalize).collect();
        let found = events(&log, &format!("audit-{at}"), expected.len()).await;
        let found: Vec<Value> = found.into_iter().map(normalize).collect();
        if found != expected {
            let lines = |events: &[Value]| events.iter().map(|e| format!("  {e}\n")).collect::<String>();
            differences.push(format!(
                "{}\nexpected\n{}found\n{}",
                row["send"],
                lines(&expected),
                lines(&found)
            ));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}
