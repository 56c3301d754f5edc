//! APIServices over HTTPS, as kube-rs and kubectl use them: verbs, representations, patches, watches.

use futures::{StreamExt, TryStreamExt};
use http::Method;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use portico_tests::http::JsonLines;
use portico_tests::objects::{API_SERVICES, local_api_service, remote_api_service};
use portico_tests::{Portico, WAIT_LIMIT, eventually};
use serde_json::{Value, json};

fn typed(object: Value) -> APIService {
    serde_json::from_value(object).unwrap()
}

fn one(name: &str) -> String {
    format!("{API_SERVICES}/{name}")
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_rs_creates_reads_lists_patches_and_deletes() {
    let portico = Portico::start().await;
    let api: Api<APIService> = Api::all(portico.kube().await);
    let created =
        api.create(&PostParams::default(), &typed(local_api_service("kube.example.com"))).await.unwrap();
    assert!(created.metadata.uid.is_some());
    assert_eq!(api.get("v1.kube.example.com").await.unwrap(), created);
    let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    api.patch("v1.kube.example.com", &PatchParams::default(), &patch).await.unwrap();
    let listed = api.list(&ListParams::default().labels("a=b")).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    let json_patch = json!([{"op": "replace", "path": "/spec/versionPriority", "value": 77}]);
    let json_patch = Patch::<()>::Json(serde_json::from_value(json_patch).unwrap());
    let patched = api.patch("v1.kube.example.com", &PatchParams::default(), &json_patch).await.unwrap();
    assert_eq!(patched.spec.unwrap().version_priority, 77);
    api.delete("v1.kube.example.com", &DeleteParams::default()).await.unwrap();
    let gone = api.get_opt("v1.kube.example.com").await.unwrap();
    assert!(gone.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_rs_watches_from_a_list() {
    let portico = Portico::start().await;
    let api: Api<APIService> = Api::all(portico.kube().await);
    let revision = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut events = api.watch(&WatchParams::default(), &revision).await.unwrap().boxed();
    api.create(&PostParams::default(), &typed(local_api_service("w.example.com"))).await.unwrap();
    api.delete("v1.w.example.com", &DeleteParams::default()).await.unwrap();
    let mut seen = Vec::new();
    while seen.last() != Some(&"DELETED") {
        let event = tokio::time::timeout(WAIT_LIMIT, events.try_next()).await;
        match event.expect("an event arrives").unwrap().expect("the watch continues") {
            WatchEvent::Added(_) => seen.push("ADDED"),
            WatchEvent::Deleted(_) => seen.push("DELETED"),
            WatchEvent::Error(e) => panic!("{e}"),
            _ => {}
        }
    }
    assert_eq!(seen, ["ADDED", "DELETED"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn https_and_grpc_show_the_same_object() {
    let portico = Portico::start().await;
    portico.admin().post(API_SERVICES, &local_api_service("both.example.com")).await;
    let over_http = portico.admin().get(&one("v1.both.example.com")).await.json();
    let request = portico_proto::apiregistration::GetRequest {
        name: "v1.both.example.com".into(),
        ..Default::default()
    };
    let over_grpc = portico.control().api_services().get(request).await.unwrap().into_inner();
    let metadata = over_grpc.metadata.unwrap();
    assert_eq!(over_http["metadata"]["uid"], metadata.uid);
    assert_eq!(over_http["metadata"]["resourceVersion"], metadata.resource_version);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_has_upstreams_columns_and_names_the_reason() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    admin.post(API_SERVICES, &remote_api_service("table.example.com", "", 443)).await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let table = eventually("the reason is in the table", || async {
        let table = admin.get_as(&one("v1.table.example.com"), accept).await.json();
        if table["rows"][0]["cells"][2] == "False (ServiceNotFound)" { Ok(table) } else { Err(table) }
    })
    .await;
    assert_eq!(table["kind"], "Table");
    let names: Vec<&str> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Name", "Service", "Available", "Age"]);
    let cells = &table["rows"][0]["cells"];
    assert_eq!((&cells[0], &cells[1]), (&json!("v1.table.example.com"), &json!("default/backend")));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let partial = admin
        .get_as(&one("v1.table.example.com"), "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
        .await;
    assert_eq!(partial.json()["kind"], "PartialObjectMetadata");
    assert!(partial.json()["spec"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn flow_schemas_are_listed_in_the_order_in_which_they_are_matched() {
    let portico = Portico::start().await;
    let path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = portico.admin().get_as(path, accept).await.json();
    let row = |row: &Value| (row["cells"][2].as_i64().unwrap(), row["cells"][0].as_str().unwrap().to_owned());
    let rows: Vec<_> = table["rows"].as_array().unwrap().iter().map(row).collect();
    assert_eq!(rows.first().unwrap(), &(1, "exempt".to_owned()));
    assert!(rows.is_sorted() && rows.len() > 3, "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn yaml_is_read_and_written() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let yaml = "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.yaml.example.com}\n\
        spec:\n  group: yaml.example.com\n  version: v1\n  groupPriorityMinimum: 10\n  versionPriority: 10\n";
    let created = admin.request(Method::POST, API_SERVICES, "application/yaml", yaml).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let read = admin.get_as(&one("v1.yaml.example.com"), "application/yaml").await;
    assert!(read.header("content-type").starts_with("application/yaml"));
    assert!(read.text().contains("groupPriorityMinimum: 10"), "{}", read.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_resource_and_its_status_are_written_separately() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let mut object = admin.post(API_SERVICES, &local_api_service("apart.example.com")).await.json();
    object["status"] = json!({});
    object["spec"]["versionPriority"] = json!(20);
    let written = admin.put(&one("v1.apart.example.com"), &object).await.json();
    assert_eq!(written["spec"]["versionPriority"], 20);
    assert_eq!(written["status"]["conditions"][0]["reason"], "Local");
    let mut object = written;
    object["spec"]["versionPriority"] = json!(30);
    object["status"]["conditions"] = json!([{"type": "Mine", "status": "True"}]);
    let path = one("v1.apart.example.com/status");
    let answer = admin.put(&path, &object).await;
    assert_eq!(answer.json()["spec"]["versionPriority"], 20);
    assert_eq!(answer.json()["status"]["conditions"][0]["type"], "Mine");
    let bad = json!({"status": {"conditions": [{"type": "Mine", "status": "Maybe"}]}});
    admin.merge(&path, &bad).await.status_body(422, "Invalid");
    admin
        .request(Method::PATCH, &path, "application/strange+json", "{}")
        .await
        .status_body(415, "UnsupportedMediaType");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_sends_events_and_bookmarks_and_ends_in_time() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let list = admin.get(API_SERVICES).await.json();
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path =
        format!("{API_SERVICES}?watch=1&resourceVersion={revision}&timeoutSeconds=30&labelSelector=w%3Dy");
    let request = http::Request::get(&path).body(Default::default()).unwrap();
    let mut lines = JsonLines::new(admin.send(request).await.unwrap().into_body());
    let mut object = local_api_service("events.example.com");
    object["metadata"]["labels"] = json!({"w": "y"});
    admin.post(API_SERVICES, &object).await;
    let first = lines.next().await.unwrap();
    assert_eq!(
        (&first["type"], &first["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("v1.events.example.com"))
    );
    admin.merge(&one("v1.events.example.com"), &json!({"metadata": {"labels": {"w": "n"}}})).await;
    let mut last = lines.next().await.unwrap();
    while last["type"] == "MODIFIED" {
        last = lines.next().await.unwrap();
    }
    assert_eq!(last["type"], "DELETED", "an object that no longer matches is deleted for the watcher");

    let short =
        format!("{API_SERVICES}?watch=1&resourceVersion={revision}&timeoutSeconds=1&labelSelector=none");
    let request = http::Request::get(&short).body(Default::default()).unwrap();
    let mut lines = JsonLines::new(admin.send(request).await.unwrap().into_body());
    assert_eq!(lines.next().await, None, "a watch ends by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_statuses_with_upstreams_codes() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    admin.post(API_SERVICES, &local_api_service("r.example.com")).await;
    admin.post(API_SERVICES, &local_api_service("r.example.com")).await.status_body(409, "AlreadyExists");
    let missing = admin.get(&one("v1.nowhere")).await.status_body(404, "NotFound");
    assert_eq!(missing["details"]["name"], "v1.nowhere");
    let mut wrong = local_api_service("r.example.com");
    wrong["metadata"]["name"] = json!("v2.other");
    let invalid = admin.post(API_SERVICES, &wrong).await.status_body(422, "Invalid");
    assert_eq!(invalid["details"]["causes"][0]["field"], "metadata.name");
    let mut unknown = local_api_service("strict.example.com");
    unknown["spec"]["extra"] = json!(1);
    let strict = format!("{API_SERVICES}?fieldValidation=Strict");
    let refused = admin.post(&strict, &unknown).await.status_body(400, "BadRequest");
    assert!(refused["message"].as_str().unwrap().contains("spec.extra"));
    let warned = admin.post(&format!("{API_SERVICES}?fieldValidation=Warn&dryRun=All"), &unknown).await;
    assert!(warned.header("warning").contains("spec.extra"), "{:?}", warned.headers);
    admin.put(API_SERVICES, &local_api_service("r.example.com")).await.status_body(405, "MethodNotAllowed");
    admin.get("/apis/apiregistration.k8s.io/v1beta1/apiservices").await.status_body(404, "NotFound");
    portico.anonymous().as_user("alice").get(API_SERVICES).await.status_body(403, "Forbidden");
    portico.anonymous().with_token("wrong").get("/apis").await.status_body(401, "Unauthorized");
    let anonymous = portico.anonymous().get(API_SERVICES).await.status_body(403, "Forbidden");
    assert!(anonymous["message"].as_str().unwrap().contains("system:anonymous"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kinds_that_routing_needs_are_served() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    for (path, object) in [
        ("/api/v1/namespaces", json!({"kind": "Namespace", "metadata": {"name": "n"}})),
        (
            "/api/v1/namespaces/default/configmaps",
            json!({"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}),
        ),
        (
            "/api/v1/namespaces/default/secrets",
            json!({"kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}),
        ),
        (
            "/api/v1/namespaces/default/services",
            json!({"kind": "Service", "metadata": {"name": "x"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}),
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            json!({"kind": "Lease", "metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}),
        ),
        (
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            json!({"kind": "EndpointSlice", "metadata": {"name": "e"}, "addressType": "IPv4", "endpoints": []}),
        ),
    ] {
        let created = admin.post(path, &object).await;
        assert_eq!(created.status, 201, "{path}: {}", created.text());
        let name = object["metadata"]["name"].as_str().unwrap();
        assert_eq!(admin.get(&format!("{path}/{name}")).await.json()["kind"], object["kind"]);
        let deleted = admin.delete(&format!("{path}/{name}")).await;
        assert_eq!(deleted.status, 200, "{path}: {}", deleted.text());
    }
}
