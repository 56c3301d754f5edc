//! Results of controllers for Services, pods, Endpoints and budgets, compared with those of kube-controller-manager 1.36.3 in the
//! same situations (`.ci/record/controllers` writes the table).

use portico_tests::http::Http;
use portico_tests::{Portico, eventually};
use serde_json::{Map, Value, json};

const TABLE: &str = include_str!("recorded/controllers.jsonl");
const FOLLOWED: [(&str, &str); 3] = [
    ("/api/v1", "endpoints"),
    ("/apis/discovery.k8s.io/v1", "endpointslices"),
    ("/apis/policy/v1", "poddisruptionbudgets"),
];

fn path(resource: &str, namespace: &str) -> String {
    let group = match resource {
        "endpointslices" => "/apis/discovery.k8s.io/v1",
        "poddisruptionbudgets" => "/apis/policy/v1",
        "replicasets" | "deployments" | "statefulsets" => "/apis/apps/v1",
        "customresourcedefinitions" => "/apis/apiextensions.k8s.io/v1",
        "scalables" => "/apis/controllers.example.com/v1",
        _ => "/api/v1",
    };
    match resource {
        "nodes" | "customresourcedefinitions" => format!("{group}/{resource}"),
        _ => format!("{group}/namespaces/{namespace}/{resource}"),
    }
}

fn str_of<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// Returns the body with `$uid:KIND/NAME` replaced by the uid of that object in the namespace.
async fn with_uids(admin: &Http, body: &Value, namespace: &str) -> Value {
    let mut body = body.clone();
    let Some(owners) = body["metadata"]["ownerReferences"].as_array_mut() else { return body };
    for owner in owners {
        if let Some((kind, name)) =
            str_of(owner, "uid").strip_prefix("$uid:").and_then(|of| of.split_once('/'))
        {
            let resource = format!("{}s", kind.to_lowercase());
            let found = admin.get(&format!("{}/{name}", path(&resource, namespace))).await.json();
            owner["uid"] = found["metadata"]["uid"].clone();
        }
    }
    body
}

async fn create(admin: &Http, step: &Value, namespace: &str) {
    let (resource, body) = (str_of(step, "create"), with_uids(admin, &step["body"], namespace).await);
    // The service account of a new namespace and a new kind are available with a short delay.
    eventually("the object is created", || async {
        let created = admin.post(&path(resource, namespace), &body).await;
        if created.status == 201 { Ok(()) } else { Err(created.text()) }
    })
    .await;
    if !step["status"].is_null() {
        let at = format!("{}/{}/status", path(resource, namespace), str_of(&body["metadata"], "name"));
        let written = admin.merge(&at, &json!({"status": step["status"]})).await;
        assert_eq!(written.status, 200, "{}", written.text());
    }
}

async fn change(admin: &Http, step: &Value, namespace: &str) {
    let name = str_of(step, "name");
    let answer = if let Some(resource) = step["patch"].as_str() {
        let part = step["subresource"].as_str().map_or(String::new(), |part| format!("/{part}"));
        admin.merge(&format!("{}/{name}{part}", path(resource, namespace)), &step["body"]).await
    } else if let Some(resource) = step["delete"].as_str() {
        admin.delete(&format!("{}/{name}?gracePeriodSeconds=0", path(resource, namespace))).await
    } else {
        let pod = str_of(step, "evict");
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}});
        admin.post(&format!("{}/{pod}/eviction", path("pods", namespace)), &eviction).await
    };
    assert!(answer.status.is_success(), "{step}: {}", answer.text());
}

/// Returns the compared parts of an object: no uids, no times, and no empty values.
fn normal(resource: &str, item: &Value) -> Value {
    let metadata = &item["metadata"];
    let name_field = if resource == "endpointslices" { "generateName" } else { "name" };
    let mut normal = item.as_object().cloned().unwrap_or_default();
    for field in ["apiVersion", "kind", "spec"] {
        normal.remove(field);
    }
    let mut annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
    annotations.remove("endpoints.kubernetes.io/last-change-trigger-time");
    let compared_metadata = json!({
        "labels": metadata["labels"], "annotations": annotations, "owners": metadata["ownerReferences"],
        name_field: metadata[name_field],
    });
    normal.insert("metadata".to_owned(), compared_metadata);
    Value::Object(normal)
}

/// Returns the same text for values that are equal except for the order of lists and for empty values.
fn canonical(value: &Value) -> String {
    let joined = |mut parts: Vec<String>| {
        parts.retain(|part| !part.is_empty());
        parts.sort();
        parts.join(",")
    };
    match value {
        Value::Null => String::new(),
        Value::Array(list) => joined(list.iter().map(|item| format!("[{}]", canonical(item))).collect()),
        Value::Object(map) => joined(map.iter().map(|(key, value)| entry(key, value)).collect()),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn entry(key: &str, value: &Value) -> String {
    let text = match (key, value) {
        ("lastTransitionTime" | "uid", _) => return String::new(),
        // Only the names of these pods are compared, as the table contains no more.
        ("disruptedPods", Value::Object(pods)) => canonical(&pods.keys().cloned().collect()),
        _ => canonical(value),
    };
    let is_absent = text.is_empty() && !value.is_string();
    if is_absent { text } else { format!("{key}={{{text}}}") }
}

async fn state(admin: &Http, namespace: &str) -> Value {
    let mut state = Map::new();
    for (group, resource) in FOLLOWED {
        let listed = admin.get(&format!("{group}/namespaces/{namespace}/{resource}")).await.json();
        let items = listed["items"].as_array().cloned().unwrap_or_default();
        let existing = items.iter().filter(|item| item["metadata"]["deletionTimestamp"].is_null());
        state.insert(resource.to_owned(), existing.map(|item| normal(resource, item)).collect());
    }
    let text = Value::Object(state).to_string().replace(namespace, "NAMESPACE");
    serde_json::from_str(&text).unwrap()
}

async fn wait_for(admin: &Http, namespace: &str, situation: &Value, field: &str) {
    let want = if situation[field].is_null() { &situation["result"] } else { &situation[field] };
    eventually(str_of(situation, "name"), || async {
        let now = state(admin, namespace).await;
        if canonical(&now) == canonical(want) { Ok(()) } else { Err(format!("got {now}\nwant {want}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_have_the_results_of_upstreams() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let mut rows = TABLE.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    for step in rows.next().unwrap()["cluster"].as_array().unwrap() {
        create(&admin, step, "").await;
    }
    let situations: Vec<(String, Value)> =
        rows.enumerate().map(|(at, row)| (format!("situation-{at}"), row)).collect();
    assert!(situations.len() >= 70, "{}", situations.len());
    let steps = |situation: &Value| situation["steps"].as_array().unwrap().clone();
    for (namespace, situation) in &situations {
        admin.post("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await;
        for step in steps(situation).iter().filter(|step| step["create"].is_string()) {
            create(&admin, step, namespace).await;
        }
    }
    for (namespace, situation) in &situations {
        wait_for(&admin, namespace, situation, "before").await;
        for step in steps(situation).iter().filter(|step| !step["create"].is_string()) {
            change(&admin, step, namespace).await;
        }
    }
    for (namespace, situation) in &situations {
        wait_for(&admin, namespace, situation, "result").await;
    }
}
