//! Responses that are larger than one gRPC message: the response to a completed write contains the written objects.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use portico_proto::objects::{Call, DoRequest, ListRequest, Target};
use portico_tests::http::{FullResponse, Http, JsonLines};
use portico_tests::objects::{CONFIG_MAPS, DEFINITIONS};
use portico_tests::{Portico, wait_until};
use serde_json::{Value, json};

/// Limit of gRPC messages.
const MESSAGE: usize = 4 << 20;
const NOTES: &str = "/apis/large.example.com/v1/namespaces/default/notes";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const YAML: &str = "application/yaml";
const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Sends a request with an Accept header and, unless it is empty, a body.
async fn send(
    client: &Http,
    method: Method,
    path: &str,
    accept: &str,
    body: (&str, Vec<u8>),
) -> FullResponse {
    let request = Request::builder().method(&method).uri(path).header("accept", accept);
    let request = match body.0 {
        "" => request,
        media_type => request.header("content-type", media_type),
    };
    let request = request.body(Full::new(Bytes::from(body.1))).unwrap();
    client.fetch(request).await.unwrap_or_else(|error| panic!("{method} {path} as {accept}: {error}"))
}

/// Creates 20 ConfigMaps, each with almost as many bytes of annotations as an object may have: 5 MB in every form of a list.
async fn create_maps(client: &Http) {
    for n in 0..20 {
        let metadata = json!({"name": format!("large-{n}"), "labels": {"large": "1"}, "annotations": {"a": "x".repeat(250_000)}});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        assert_eq!(client.post(CONFIG_MAPS, &map).await.status, 201);
    }
}

async fn count_maps(client: &Http) -> usize {
    client.get(&format!("{CONFIG_MAPS}?labelSelector=large")).await.json()["items"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_collection_is_returned_completely_in_every_representation() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    for (accept, items) in [(JSON, "items"), (METADATA, "items"), (TABLE, "rows"), (YAML, ""), (PROTOBUF, "")]
    {
        create_maps(&admin).await;
        let path = format!("{CONFIG_MAPS}?labelSelector=large");
        let answer = send(&admin, Method::DELETE, &path, accept, ("", Vec::new())).await;
        let excerpt = String::from_utf8_lossy(&answer.body[..answer.body.len().min(300)]).into_owned();
        assert_eq!((answer.status.as_u16(), count_maps(&admin).await), (200, 0), "{accept}: {excerpt}");
        assert!(answer.body.len() > MESSAGE, "{accept}: {} bytes", answer.body.len());
        if !items.is_empty() {
            assert_eq!(answer.json()[items].as_array().map(Vec::len), Some(20), "{accept}: {excerpt}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_sends_more_objects_than_its_buffer_holds() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    create_maps(&admin).await;
    let query = "watch=true&labelSelector=large&sendInitialEvents=true&allowWatchBookmarks=true\
        &resourceVersionMatch=NotOlderThan";
    let request = Request::get(format!("{CONFIG_MAPS}?{query}")).body(Full::default()).unwrap();
    let mut events = JsonLines::new(admin.send(request).await.unwrap().into_body());
    for n in 0..20 {
        assert_eq!(events.next().await.unwrap()["type"], "ADDED", "{n}");
    }
    assert_eq!(events.next().await.unwrap()["type"], "BOOKMARK");
}

/// Returns a definition whose Table shows a text four times.
fn notes() -> Value {
    let column = |n: u8| json!({"name": format!("Text{n}"), "type": "string", "jsonPath": ".spec.text"});
    let spec =
        json!({"type": "object", "properties": {"text": {"type": "string"}, "other": {"type": "string"}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema,
        "additionalPrinterColumns": [column(1), column(2), column(3), column(4)]});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "notes.large.example.com"},
        "spec": {"group": "large.example.com", "scope": "Namespaced",
            "names": {"plural": "notes", "kind": "Note"}, "versions": [version]}})
}

fn note(name: &str) -> Value {
    json!({"apiVersion": "large.example.com/v1", "kind": "Note",
        "metadata": {"name": name, "finalizers": ["example.com/kept"]},
        "spec": {"text": "x".repeat(1_100_000)}})
}

#[tokio::test(flavor = "multi_thread")]
async fn representations_may_be_larger_than_a_message() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    assert_eq!(admin.post(DEFINITIONS, &notes()).await.status, 201);
    wait_until("the definition is served", async || admin.get(NOTES).await.status == 200).await;
    let one = format!("{NOTES}/one");
    let apply = format!("{one}?fieldManager=applier");
    let patch = json!({"spec": {"other": "merged"}});
    let applied = json!({"apiVersion": "large.example.com/v1", "kind": "Note", "spec": {"other": "applied"}});
    let mut replaced = note("one");
    replaced["spec"]["other"] = "replaced".into();
    let watch = Request::get(format!("{NOTES}?watch=1&resourceVersion=0")).header("accept", TABLE);
    for (method, path, media_type, body, code) in [
        (Method::POST, NOTES, JSON, note("one"), 201),
        (Method::GET, &one, "", Value::Null, 200),
        (Method::PATCH, &one, "application/merge-patch+json", patch, 200),
        (Method::PUT, &one, JSON, replaced, 200),
        (Method::PATCH, &format!("{apply}&force=true"), "application/apply-patch+yaml", applied, 200),
        (Method::DELETE, &one, "", Value::Null, 200),
    ] {
        let mut body = body;
        if method == Method::PUT {
            body["metadata"]["resourceVersion"] =
                admin.get(&one).await.json()["metadata"]["resourceVersion"].take();
        }
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer = send(&admin, method.clone(), path, TABLE, (media_type, body)).await;
        let excerpt = String::from_utf8_lossy(&answer.body[..answer.body.len().min(300)]).into_owned();
        assert_eq!(answer.status.as_u16(), code, "{method} {path}: {excerpt}");
        assert!(answer.body.len() > MESSAGE, "{method} {path}: {} bytes: {excerpt}", answer.body.len());
        assert_eq!(answer.json()["rows"].as_array().map(Vec::len), Some(1), "{method} {path}: {excerpt}");
    }
    let deleted = admin.get(&one).await.json();
    assert!(deleted["metadata"]["deletionTimestamp"].is_string());
    let watched = admin.send(watch.body(Full::default()).unwrap()).await.unwrap();
    let event = JsonLines::new(watched.into_body()).next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["kind"]), (&json!("ADDED"), &json!("Table")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_too_large_for_the_store_is_refused() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    // Just below the limit of bodies: with its managed fields it exceeds the limit of the store.
    let key = |n: usize| format!("{n:0>200}");
    let data: Value = (0..14_000).map(|n| (key(n), json!("x"))).collect::<serde_json::Map<_, _>>().into();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fat"}, "data": data});
    assert!(map.to_string().len() < 3 << 20);
    admin.post(CONFIG_MAPS, &map).await.status_body(413, "RequestEntityTooLarge");
    assert_eq!(admin.get(&format!("{CONFIG_MAPS}/fat")).await.status, 404);
}

fn maps(verb: &str) -> Call {
    let target = Target {
        version: "v1".into(),
        resource: "configmaps".into(),
        namespace: "default".into(),
        ..Target::default()
    };
    let query = "labelSelector=large".into();
    Call { target: Some(target), verb: verb.into(), query, ..Call::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_response_reports_that_the_write_succeeded() {
    let portico = Portico::start().await;
    let (admin, client) = (portico.admin(), portico.control());
    create_maps(&admin).await;
    let mut table = maps("list");
    table.accept = TABLE.into();
    let refused = client.objects().r#do(DoRequest { call: Some(table) }).await.unwrap_err();
    assert!(refused.message().contains("exceeds the size of a message"), "{}", refused.message());
    let deleted = client.objects().r#do(DoRequest { call: Some(maps("deletecollection")) }).await;
    let deleted = deleted.unwrap().into_inner();
    assert_eq!((deleted.code, deleted.body_omitted, deleted.body.len()), (200, true, 0));
    assert_eq!(count_maps(&admin).await, 0);

    create_maps(&admin).await;
    let request = ListRequest { call: Some(maps("deletecollection")) };
    let mut parts = client.objects().list(request).await.unwrap().into_inner();
    let mut whole = Vec::new();
    while let Some(part) = parts.message().await.unwrap() {
        assert!(part.body.len() <= 1 << 20, "{} bytes", part.body.len());
        whole.extend_from_slice(&part.body);
    }
    let list: Value = serde_json::from_slice(&whole).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 20);
    assert_eq!(count_maps(&admin).await, 0);
}
