//! Conversion webhooks of custom resources: the reviews they receive, results of their responses, and effects of broken ones.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use http_body_util::Full;
use portico_proto::apiregistration::ExplainRequest;
use portico_tests::http::{FullResponse, Http, JsonLines};
use portico_tests::objects::DEFINITIONS;
use portico_tests::{Backend, Behavior, Portico, ReceivedRequest, SERVER_NAME, pki, wait_until};
use serde_json::{Value, json};

const GROUP: &str = "swaps.example.com";
const NAME: &str = "swaps.swaps.example.com";

/// Returns the path of the objects of a version.
fn objects(version: &str) -> String {
    format!("/apis/{GROUP}/{version}/namespaces/default/swaps")
}

/// Returns a definition of two versions with a webhook.
fn definition(client_config: &Value, reviews: &[&str]) -> Value {
    let spec = |field: &str, kind: &str| json!({"type": "object", "properties": {field: {"type": kind}}});
    let version = |name: &str, storage: bool, spec: Value| {
        json!({"name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": "swaps", "kind": "Swap"},
            "conversion": {"strategy": "Webhook",
                "webhook": {"clientConfig": client_config, "conversionReviewVersions": reviews}},
            "versions": [version("v1", true, spec("size", "string")), version("v2", false, spec("replicas", "integer"))]}})
}

/// Returns a client configuration with a path of the backend.
fn at(backend: &Backend, path: &str) -> Value {
    json!({"url": format!("{}{path}", backend.url()), "caBundle": STANDARD.encode(&backend.ca)})
}

/// Starts a backend with a certificate for its address.
async fn hooks() -> Backend {
    Backend::with_names("hooks", &["127.0.0.1"]).await
}

async fn define(admin: &Http, definition: &Value) {
    let created = admin.post(DEFINITIONS, definition).await;
    assert_eq!(created.status, 201, "{}", created.text());
    wait_until("the versions are served", || async { admin.get(&objects("v2")).await.status == 200 }).await;
}

async fn create(admin: &Http, version: &str, name: &str, spec: Value) -> FullResponse {
    let object = json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "Swap", "metadata": {"name": name}, "spec": spec});
    admin.post(&objects(version), &object).await
}

/// Starts a process with a definition whose webhook is this backend, and an object `a` of v1.
async fn swapping(backend: &Backend) -> (Portico, Http) {
    let portico = Portico::start().await;
    let admin = portico.admin();
    define(&admin, &definition(&at(backend, "/convert"), &["v1"])).await;
    assert_eq!(create(&admin, "v1", "a", json!({"size": "3"})).await.status, 201);
    (portico, admin)
}

/// Patches the definition.
async fn patch(admin: &Http, patch: &Value) {
    let patched = admin.merge(&format!("{DEFINITIONS}/{NAME}"), patch).await;
    assert_eq!(patched.status, 200, "{}", patched.text());
}

/// Makes v2 the storage version.
async fn store_in_v2(admin: &Http) {
    let mut versions = definition(&json!({}), &[])["spec"]["versions"].take();
    (versions[0]["storage"], versions[1]["storage"]) = (false.into(), true.into());
    patch(admin, &json!({"spec": {"versions": versions}})).await;
}

/// Returns the objects of each review that was received.
fn reviews(backend: &Backend) -> Vec<Value> {
    let body = |seen: ReceivedRequest| serde_json::from_slice::<Value>(&seen.body).unwrap();
    backend.requests().into_iter().map(|seen| body(seen)["request"]["objects"].take()).collect()
}

async fn watch(admin: &Http, version: &str) -> JsonLines {
    let path = format!("{}?watch=true", objects(version));
    let answer = admin.send(Request::get(path).body(Full::default()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200);
    JsonLines::new(answer.into_body())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhooks_ca_bundle_may_be_its_certificate_itself() {
    let names = ["127.0.0.1"];
    for pair in [pki::Authority::new("another").server(&names), pki::self_signed(&names)] {
        let backend = Backend::with_self_signed("hooks", &pair).await;
        let (_portico, admin) = swapping(&backend).await;
        let read = admin.get(&format!("{}/a", objects("v2"))).await;
        assert_eq!(read.json()["spec"], json!({"replicas": 3}), "{}", read.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_read_and_written_in_the_requested_version() {
    let backend = hooks().await;
    let (_portico, admin) = swapping(&backend).await;
    let read = admin.get(&format!("{}/a", objects("v2"))).await.json();
    assert_eq!(read["spec"], json!({"replicas": 3}));
    assert_eq!(read["metadata"]["labels"], json!({"from": "v1"}), "labels are the webhook's");
    assert_eq!(read["metadata"]["generation"], 1, "other metadata is the original's");
    let seen = backend.last_request();
    assert_eq!((seen.target.as_str(), seen.method.as_str()), ("/convert?timeout=30s", "POST"));
    assert_eq!(seen.all("content-type"), ["application/json"]);
    let review: Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(review["apiVersion"], "apiextensions.k8s.io/v1");
    assert_eq!(review["request"]["desiredAPIVersion"], format!("{GROUP}/v2"));

    let mut events = watch(&admin, "v1").await;
    assert_eq!(events.next().await.unwrap()["object"]["spec"], json!({"size": "3"}));
    let created = create(&admin, "v2", "b", json!({"replicas": 5})).await;
    assert_eq!(created.json()["spec"], json!({"replicas": 5}));
    let added = events.next().await.unwrap();
    assert_eq!((&added["type"], &added["object"]["spec"]), (&"ADDED".into(), &json!({"size": "5"})));
    let patched =
        admin.merge(&format!("{}/a", objects("v2")), &json!({"spec": {"replicas": 7}})).await.json();
    assert_eq!((&patched["spec"]["replicas"], &patched["metadata"]["generation"]), (&7.into(), &2.into()));
    assert_eq!(events.next().await.unwrap()["object"]["spec"]["size"], "7");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_needs_one_review() {
    let backend = hooks().await;
    let (_portico, admin) = swapping(&backend).await;
    assert_eq!(create(&admin, "v1", "b", json!({"size": "4"})).await.status, 201);
    store_in_v2(&admin).await;
    assert_eq!(create(&admin, "v2", "c", json!({"replicas": 5})).await.status, 201);
    let before = reviews(&backend).len();
    let list = admin.get(&objects("v2")).await.json();
    let replicas: Vec<_> = list["items"].as_array().unwrap().iter().map(|i| &i["spec"]["replicas"]).collect();
    assert_eq!(replicas, [3, 4, 5]);
    let sent = reviews(&backend).split_off(before);
    let names = |review: &Value| {
        review.as_array().unwrap().iter().map(|o| o["metadata"]["name"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(sent.iter().map(names).collect::<Vec<_>>(), [["\"a\"", "\"b\""]]);

    let by_label = admin.get(&format!("{}?labelSelector=from%3Dv1&limit=1", objects("v2"))).await.json();
    assert_eq!(by_label["items"][0]["metadata"]["name"], "a", "selectors see converted objects");
    let rest = by_label["metadata"]["continue"].as_str().unwrap();
    let rest = admin.get(&format!("{}?labelSelector=from%3Dv1&limit=1&continue={rest}", objects("v2"))).await;
    assert_eq!(rest.json()["items"][0]["metadata"]["name"], "b");
    for name in ["a", "b"] {
        assert_eq!(admin.delete(&format!("{}/{name}", objects("v2"))).await.status, 200);
    }
    let before = reviews(&backend).len();
    assert_eq!(admin.get(&objects("v2")).await.status, 200);
    assert_eq!(reviews(&backend).len(), before, "no review is sent if all objects have the version");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_share_conversions_of_live_events_with_watches() {
    let backend = hooks().await;
    let (_portico, admin) = swapping(&backend).await;
    let mut events = watch(&admin, "v2").await;
    assert_eq!(events.next().await.unwrap()["object"]["metadata"]["name"], "a");
    assert_eq!(create(&admin, "v1", "b", json!({"size": "4"})).await.status, 201);
    assert_eq!(events.next().await.unwrap()["object"]["spec"], json!({"replicas": 4}));
    let before = reviews(&backend).len();
    let list = admin.get(&objects("v2")).await.json();
    assert_eq!(list["items"][1]["spec"], json!({"replicas": 4}));
    assert_eq!(reviews(&backend).len(), before, "converted for the watch");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_share_conversions_of_each_state_until_the_definition_changes() {
    let backend = hooks().await;
    let (_portico, admin) = swapping(&backend).await;
    let replicas = async || {
        let list = admin.get(&objects("v2")).await.json();
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["spec"]["replicas"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(replicas().await, [3]);
    let before = reviews(&backend).len();
    assert_eq!(replicas().await, [3]);
    assert_eq!(watch(&admin, "v2").await.next().await.unwrap()["object"]["spec"], json!({"replicas": 3}));
    assert_eq!(reviews(&backend).len(), before, "converted once");
    assert_eq!(create(&admin, "v1", "b", json!({"size": "4"})).await.status, 201);
    let spec = json!({"spec": {"size": "7"}});
    assert_eq!(admin.merge(&format!("{}/a", objects("v1")), &spec).await.status, 200);
    assert_eq!(replicas().await, [7, 4]);
    assert_eq!(reviews(&backend).len(), before + 1, "one review with the new objects only");

    let config = at(&backend, "/convert/fail");
    patch(&admin, &json!({"spec": {"conversion": {"webhook": {"clientConfig": config}}}})).await;
    assert!(failure_of(&admin, &objects("v2")).await.ends_with("not in the mood"));
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_of_one_version_share_conversions() {
    let backend = hooks().await;
    let (_portico, admin) = swapping(&backend).await;
    let mut watches = Vec::new();
    for _ in 0..5 {
        let mut events = watch(&admin, "v2").await;
        assert_eq!(events.next().await.unwrap()["object"]["spec"], json!({"replicas": 3}));
        watches.push(events);
    }
    let before = reviews(&backend).len();
    assert_eq!(create(&admin, "v1", "b", json!({"size": "8"})).await.status, 201);
    for events in &mut watches {
        assert_eq!(events.next().await.unwrap()["object"]["spec"], json!({"replicas": 8}));
    }
    assert_eq!(reviews(&backend).len(), before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn conversions_of_replaced_states_are_not_cached() {
    let backend = hooks().await;
    let (_portico, admin) = swapping(&backend).await;
    let revision = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let begin = revision(&admin.get(&objects("v1")).await.json());
    let change = async |size: &str| {
        let url = format!("{}/a", objects("v1"));
        revision(&admin.merge(&url, &json!({"spec": {"size": size}})).await.json())
    };
    let (replaced, _) = (change("4").await, change("5").await);
    let path = format!("{}?watch=true&resourceVersion={begin}", objects("v2"));
    let mut replay = JsonLines::new(
        admin.send(Request::get(path).body(Full::default()).unwrap()).await.unwrap().into_body(),
    );
    for replicas in [4, 5] {
        assert_eq!(replay.next().await.unwrap()["object"]["spec"], json!({"replicas": replicas}));
    }
    let before = reviews(&backend).len();
    let list = admin.get(&objects("v2")).await.json();
    assert_eq!(list["items"][0]["spec"], json!({"replicas": 5}));
    assert_eq!(reviews(&backend).len(), before, "the watch has converted the present state");
    let past = format!("{}?resourceVersion={replaced}&resourceVersionMatch=Exact", objects("v2"));
    for reads in 1..3 {
        assert_eq!(admin.get(&past).await.json()["items"][0]["spec"], json!({"replicas": 4}));
        assert_eq!(
            reviews(&backend).len(),
            before + reads,
            "neither the watch nor a list has cached the converted state"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_whose_ca_bundle_is_invalid_serves_nothing_until_it_is_repaired() {
    let backend = hooks().await;
    let portico = Portico::start().await;
    let admin = portico.admin();
    let valid = at(&backend, "/convert");
    let mut broken = valid.clone();
    broken["caBundle"] = STANDARD.encode("placeholder").into();
    assert_eq!(admin.post(DEFINITIONS, &definition(&broken, &["v1"])).await.status, 201);
    wait_until("the names are accepted", || async { admin.get(&objects("v1")).await.status != 404 }).await;
    for version in ["v1", "v2"] {
        let list = admin.get(&objects(version)).await;
        assert_eq!(list.status, 500, "{}", list.text());
        assert_eq!(list.json()["reason"], "InternalError");
    }
    assert_eq!(create(&admin, "v1", "a", json!({"size": "3"})).await.status, 500);
    patch(&admin, &json!({"spec": {"conversion": {"webhook": {"clientConfig": valid}}}})).await;
    wait_until("the custom resource is served", || async { admin.get(&objects("v1")).await.status == 200 })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_resolved_by_service_and_gets_its_review_version() {
    let backend = Backend::with_names("hooks", &[SERVER_NAME]).await;
    let portico = Portico::start().await;
    let admin = portico.admin();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "backend"},
        "spec": {"type": "ExternalName", "externalName": "localhost"}});
    assert_eq!(admin.post("/api/v1/namespaces/default/services", &service).await.status, 201);
    let port = backend.address.port();
    let config = json!({"caBundle": STANDARD.encode(&backend.ca),
        "service": {"namespace": "default", "name": "backend", "path": "/convert", "port": port}});
    define(&admin, &definition(&config, &["v7", "v1beta1", "v1"])).await;
    assert_eq!(
        create(&admin, "v2", "a", json!({"replicas": 2})).await.json()["spec"],
        json!({"replicas": 2})
    );
    assert_eq!(admin.get(&format!("{}/a", objects("v1"))).await.json()["spec"], json!({"size": "2"}));
    let seen = backend.last_request();
    assert_eq!(seen.all("host"), [format!("{SERVER_NAME}:{port}")]);
    let review: Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(review["apiVersion"], "apiextensions.k8s.io/v1beta1");

    let other_service = json!({"service": {"namespace": "default", "name": "nobody", "path": null}});
    patch(&admin, &json!({"spec": {"conversion": {"webhook": {"clientConfig": other_service}}}})).await;
    let stored = admin.get(&format!("{}/a", objects("v1"))).await;
    assert_eq!(stored.status, 200, "{}", stored.text());
    let words = failure_of(&admin, &format!("{}/a", objects("v2"))).await;
    assert!(words.contains("service/nobody in \"default\" is not present"), "{words}");
}

/// Returns the Status message of a request that a broken webhook makes fail.
async fn failure_of(admin: &Http, path: &str) -> String {
    let answer = admin.get(path).await.json();
    assert_eq!((&answer["code"], &answer["reason"]), (&500.into(), &Value::Null), "{answer}");
    answer["message"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_webhook_affects_only_its_conversions() {
    let backend = hooks().await;
    let (portico, admin) = swapping(&backend).await;
    let mut events = watch(&admin, "v2").await;
    assert!(events.next().await.is_some());
    let prefix = format!("conversion webhook for {GROUP}/v1, Kind=Swap ");
    let moods = [
        (
            Behavior::Code(500),
            "failed: an error on the server (\"the backend says 500 Internal Server Error\") has prevented the request from succeeding",
        ),
        (
            Behavior::Redirect,
            "failed: the server responded with the status code 302 but did not return more information",
        ),
        (Behavior::Drop, "failed: Post \"https://127.0.0.1:"),
    ];
    for (mood, words) in moods {
        backend.set_behavior(mood);
        let reported = failure_of(&admin, &format!("{}/a", objects("v2"))).await;
        assert!(reported.starts_with(&format!("{prefix}{words}")), "{reported}");
        assert_eq!(admin.get(&objects("v2")).await.status, 200, "objects converted earlier are listed");
    }
    assert_eq!(create(&admin, "v1", "b", json!({"size": "4"})).await.status, 201, "no conversion is needed");
    assert!(failure_of(&admin, &objects("v2")).await.starts_with(&prefix));
    let last = events.next().await.unwrap();
    assert_eq!((&last["type"], &last["object"]["kind"]), (&"ERROR".into(), &"Status".into()), "{last}");
    assert_eq!(events.next().await, None, "the watch has ended");
    let mut late = watch(&admin, "v2").await;
    assert_eq!(late.next().await.unwrap()["type"], "ERROR");

    let metrics = admin.get("/metrics").await.text();
    for line in [
        format!("apiserver_crd_conversion_webhook_duration_seconds_count{{crd_name=\"{NAME}\",from_version=\"v1\",to_version=\"v2\",succeeded=\"false\"}}"),
        "apiserver_conversion_webhook_request_total{result=\"failure\",failure_type=\"conversion_webhook_call_failure\"}".to_owned(),
    ] {
        assert!(metrics.contains(&line), "{line}");
    }
    let request = ExplainRequest { name: format!("v2.{GROUP}") };
    let explained = portico.control().api_services().explain(request).await.unwrap().into_inner();
    assert!(!explained.available);
    let stage = explained.stages.iter().find(|stage| stage.stage == "conversion").unwrap();
    assert!(!stage.ok && stage.message.contains(NAME), "{stage:?}");

    backend.set_behavior(Behavior::Normal);
    assert_eq!(admin.get(&objects("v2")).await.status, 200);
    for (path, words) in [
        ("/convert/fail", "failed: not in the mood"),
        ("/convert/rename", "returned invalid object: must have the same name: a != another"),
    ] {
        let config = at(&backend, path);
        patch(&admin, &json!({"spec": {"conversion": {"webhook": {"clientConfig": config}}}})).await;
        assert_eq!(failure_of(&admin, &format!("{}/a", objects("v2"))).await, format!("{prefix}{words}"));
        assert_eq!(admin.get(&format!("{}/a", objects("v1"))).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_deleted_once_its_webhook_works() {
    let backend = hooks().await;
    let (_portico, admin) = swapping(&backend).await;
    store_in_v2(&admin).await;
    backend.set_behavior(Behavior::Code(503));
    assert_eq!(admin.delete(&format!("{DEFINITIONS}/{NAME}")).await.status, 200);
    let path = format!("{DEFINITIONS}/{NAME}");
    wait_until("the condition has the reason", || async {
        let definition = admin.get(&path).await.json();
        let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|c| c["type"] == "Terminating" && c["reason"] == "InstanceDeletionFailed")
    })
    .await;
    backend.set_behavior(Behavior::Normal);
    wait_until("the definition is deleted", || async { admin.get(&path).await.status == 404 }).await;
}

/// Writes `late` of v2 to this namespace; runs the future while the webhook converts it.
async fn write_while(
    backend: &Backend,
    admin: &Http,
    namespace: &str,
    meanwhile: impl Future,
) -> FullResponse {
    let object = json!({"apiVersion": format!("{GROUP}/v2"), "kind": "Swap", "metadata": {"name": "late"},
        "spec": {"replicas": 5}});
    let path = format!("/apis/{GROUP}/v2/namespaces/{namespace}/swaps");
    let before = reviews(backend).len();
    backend.set_behavior(Behavior::Paused);
    let paused = async {
        wait_until("the webhook receives the conversion", || async { reviews(backend).len() > before }).await;
        meanwhile.await;
        backend.set_behavior(Behavior::Normal);
    };
    tokio::join!(admin.post(&path, &object), paused).0
}

/// Returns the names of all objects.
async fn names(admin: &Http) -> Vec<String> {
    let list = admin.get(&format!("/apis/{GROUP}/v1/swaps")).await.json();
    let names = list["items"].as_array().unwrap().iter();
    names.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

async fn delete_and_wait(admin: &Http, path: &str) {
    assert_eq!(admin.delete(path).await.status, 200);
    wait_until("the object is deleted", || async { admin.get(path).await.status == 404 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_during_a_conversion_apply_to_the_write() {
    let backend = hooks().await;
    let (_portico, admin) = swapping(&backend).await;
    let namespace = admin.post("/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await;
    assert_eq!(namespace.status, 201, "{}", namespace.text());
    let late = write_while(&backend, &admin, "n", delete_and_wait(&admin, "/api/v1/namespaces/n")).await;
    assert!([403, 404].contains(&late.status.as_u16()), "{}", late.text());
    assert_eq!(names(&admin).await, ["a"], "the deleted namespace has no objects");

    let late = write_while(&backend, &admin, "default", store_in_v2(&admin)).await;
    assert_eq!(late.status, 201, "{}", late.text());
    let before = reviews(&backend).len();
    let read = admin.get(&format!("{}/late", objects("v2"))).await;
    assert_eq!(read.json()["spec"], json!({"replicas": 5}));
    assert_eq!(reviews(&backend).len(), before, "the object is stored in the new storage version");
    assert_eq!(admin.delete(&format!("{}/late", objects("v2"))).await.status, 200);

    // An object of v1 is converted before it is stored.
    let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Swap", "metadata": {"name": "last"},
        "spec": {"size": "5"}});
    let before = reviews(&backend).len();
    backend.set_behavior(Behavior::Paused);
    let goes = async {
        wait_until("the webhook receives the conversion", || async { reviews(&backend).len() > before })
            .await;
        let deleted = admin.delete(&format!("{DEFINITIONS}/{NAME}")).await;
        assert_eq!(deleted.status, 200, "{}", deleted.text());
        backend.set_behavior(Behavior::Normal);
    };
    let url = objects("v1");
    let (last, ()) = tokio::join!(admin.post(&url, &object), goes);
    assert!([403, 404, 405].contains(&last.status.as_u16()), "{}", last.text());
    let path = format!("{DEFINITIONS}/{NAME}");
    wait_until("the definition is deleted", || async { admin.get(&path).await.status == 404 }).await;
    define(&admin, &definition(&at(&backend, "/convert"), &["v1"])).await;
    assert!(names(&admin).await.is_empty(), "the deleted definition left no objects");
}
