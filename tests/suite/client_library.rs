//! The client library with objects of any kind: discovery by name, apply, pages, watches that survive restarts.

use std::pin::pin;

use futures::{Stream, StreamExt};
use portico_proto::admin::CompactRequest;
use portico_proto::client::{ApplyOptions, ListOptions, ResourceClient, WatchEvent};
use portico_tests::{Portico, WAIT_LIMIT};
use serde::Deserialize;
use serde_json::{Value, json};
use tonic::{Code, Status};

#[derive(Deserialize)]
struct ConfigMap {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

async fn config_maps(portico: &Portico) -> ResourceClient {
    let client = portico.control();
    let found = client.resources("cm").await.unwrap().remove(0);
    assert_eq!((&*found.resource, &*found.kind, found.namespaced), ("configmaps", "ConfigMap", true));
    client.resource(found, "default")
}

async fn apply(objects: &ResourceClient, name: &str, text: &str) -> Value {
    let options = ApplyOptions { field_manager: "tests".to_owned(), ..ApplyOptions::default() };
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"own": "1"}}, "data": {"text": text}});
    let answer = objects.apply(name, manifest.to_string().into_bytes(), &options).await.unwrap();
    serde_json::from_slice(&answer.body).unwrap()
}

/// Returns the next event: `TYPE name=text`, or the restart of the watch.
async fn next(events: &mut (impl Stream<Item = Result<WatchEvent, Status>> + Unpin)) -> String {
    let event = tokio::time::timeout(WAIT_LIMIT, events.next()).await.unwrap().unwrap().unwrap();
    let WatchEvent::Line(line) = event else { return "restarted".to_owned() };
    let event: Value = serde_json::from_slice(&line).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let object = &event["object"];
    format!(
        "{} {}={}",
        text(&event["type"]),
        text(&object["metadata"]["name"]),
        text(&object["data"]["text"])
    )
}

fn own(revision: &str) -> ListOptions {
    ListOptions {
        label_selector: "own=1".to_owned(),
        resource_version: revision.to_owned(),
        ..ListOptions::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_any_kind_are_applied_read_listed_in_pages_and_deleted() {
    let portico = Portico::start().await;
    let objects = config_maps(&portico).await;
    for n in 0..3 {
        apply(&objects, &format!("o{n}"), "x").await;
    }
    let one: Value = objects.get("o1").await.unwrap();
    assert_eq!(one["metadata"]["managedFields"][0]["manager"], "tests");
    let (mut names, mut token) = (Vec::new(), String::new());
    loop {
        let options = ListOptions { limit: 2, continue_token: token, ..own("") };
        let page = objects.list::<ConfigMap>(&options).await.unwrap();
        names.extend(page.items.into_iter().map(|object| object.metadata.name));
        token = page.continue_token;
        if token.is_empty() {
            break;
        }
    }
    // Lists with a selector have no count, as in Kubernetes.
    let first = objects.list::<Value>(&ListOptions { limit: 1, ..ListOptions::default() }).await.unwrap();
    assert!(first.items.len() == 1 && first.remaining_item_count.is_some_and(|count| count >= 2));
    let refused = objects.get::<Vec<u8>>("o1").await.unwrap_err();
    assert_eq!(refused.code(), Code::DataLoss, "{refused}");
    let bytes = objects.get_bytes("o1").await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), one);
    assert_eq!(names, ["o0", "o1", "o2"]);
    objects.delete("o1").await.unwrap();
    assert_eq!(objects.get::<Value>("o1").await.unwrap_err().code(), Code::NotFound);
    let options = ApplyOptions { field_manager: "other".to_owned(), ..ApplyOptions::default() };
    let theirs = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"o2"},"data":{"text":"y"}}"#;
    assert_eq!(objects.apply("o2", theirs.to_vec(), &options).await.unwrap_err().code(), Code::Aborted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_survives_a_restart_without_gaps() {
    let mut portico = Portico::start().await;
    let objects = config_maps(&portico).await;
    apply(&objects, "before", "1").await;
    let mut events = pin!(objects.watch(&own("")));
    assert_eq!(next(&mut events).await, "ADDED before=1");
    apply(&objects, "before", "2").await;
    assert_eq!(next(&mut events).await, "MODIFIED before=2");
    portico.kill();
    portico.restart().await;
    let objects = config_maps(&portico).await;
    apply(&objects, "after", "1").await;
    objects.delete("before").await.unwrap();
    assert_eq!(next(&mut events).await, "ADDED after=1", "resumed events are not repeated");
    assert_eq!(next(&mut events).await, "DELETED before=2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_after_compaction_restarts_and_reports_it() {
    let portico = Portico::start().await;
    let objects = config_maps(&portico).await;
    let first = apply(&objects, "a", "1").await;
    let first = first["metadata"]["resourceVersion"].as_str().unwrap();
    apply(&objects, "a", "2").await;
    portico.control().admin().compact(CompactRequest { revision: 0 }).await.unwrap();
    let mut events = pin!(objects.watch(&own(first)));
    assert_eq!(next(&mut events).await, "restarted");
    assert_eq!(next(&mut events).await, "ADDED a=2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_watch_ends_with_the_reason() {
    let portico = Portico::start().await;
    let client = portico.control_as("alice");
    let found = client.resources("secrets").await.unwrap().remove(0);
    let secrets = client.resource(found, "default");
    let mut events = pin!(secrets.watch(&ListOptions::default()));
    assert_eq!(events.next().await.unwrap().unwrap_err().code(), Code::PermissionDenied);
    assert!(events.next().await.is_none());
}
