//! Data of the console that no other path serves: samples, the tail of the audit log, methods of the control service.

use http::{Method, Request};
use http_body_util::Full;
use portico_tests::backend::Behavior;
use portico_tests::http::{Http, JsonLines};
use portico_tests::objects::API_SERVICES;
use portico_tests::{Backend, Launch, Portico, eventually, wait_until};
use serde_json::{Value, json};

const EXPLAIN: &str = "/grpc/portico.routes.v1.Routes/Explain";
const ROUTES: &str = "/grpc/portico.routes.v1.Routes/List";
const FACADES: &str = "/grpc/portico.config.v1.Config/Facades";
const WATCH_FACADES: &str = "/grpc/portico.config.v1.Config/WatchFacades";
const CHECK: &str = "/grpc/portico.apiextensions.v1.Definitions/Check";

const RECORD_ALL: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";

async fn follow(client: &Http, path: &str) -> JsonLines {
    let response = client.send(Request::get(path).body(Full::default()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json;stream=watch");
    JsonLines::new(response.into_body())
}

async fn watch_facades(client: &Http) -> JsonLines {
    let request = Request::post(WATCH_FACADES).header("content-type", "application/json");
    let response = client.send(request.body(Full::from("{}")).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    JsonLines::new(response.into_body())
}

async fn recording() -> Portico {
    let (launch, folder) = Launch::new().prepare_folder();
    std::fs::write(folder.join("policy.yaml"), RECORD_ALL).unwrap();
    launch.args(&["--audit-policy-file", "policy.yaml", "--audit-log-path", "audit.log"]).start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_count_requests_since_the_previous_one() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    for _ in 0..20 {
        assert_eq!(admin.get("/api/v1/namespaces/none").await.status, 404);
    }
    let mut lines = follow(&admin, "/console/data/last-hour?watch=true").await;
    let sample = lines.next().await.unwrap();
    assert!(sample["codes"][3].as_u64().unwrap() >= 20, "{sample}");
    assert!(sample["p50"].as_f64().unwrap() > 0.0, "{sample}");
    assert!(sample["longRunning"].as_i64().unwrap() >= 1, "the stream itself: {sample}");
    assert!(sample["memory"].as_u64().unwrap() > 1 << 20, "{sample}");
    let all = admin.get("/console/data/last-hour").await.text();
    assert_eq!(serde_json::from_str::<Value>(all.lines().next().unwrap()).unwrap(), sample);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_long_running_watches_without_an_objective() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let value = async |metric: &str| {
        let metrics = admin.get("/metrics").await.text();
        let series = format!(
            "{metric}{{verb=\"WATCH\",{}group=\"\",version=\"\",resource=\"\",subresource=\"\",scope=\"\",component=\"apiserver\"}} ",
            if metric.contains("_duration_") && !metric.contains("_sli_") { "dry_run=\"\"," } else { "" }
        );
        let value = metrics.lines().find_map(|line| line.strip_prefix(&series)?.parse::<u32>().ok());
        value.unwrap_or_default()
    };
    let mut samples = follow(&admin, "/console/data/last-hour?watch=true").await;
    let mut facades = watch_facades(&admin).await;
    let mut backends = follow(&admin, "/console/data/backends?watch=true").await;
    assert!(
        samples.next().await.is_some() && facades.next().await.is_some() && backends.next().await.is_some()
    );
    assert_eq!(value("apiserver_longrunning_requests").await, 3);
    drop((samples, facades, backends));
    wait_until("every long-running request has ended", async || {
        value("apiserver_longrunning_requests").await == 0
    })
    .await;
    assert_eq!(value("apiserver_request_duration_seconds_count").await, 3);
    assert_eq!(value("apiserver_request_sli_duration_seconds_count").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_tail_shows_recorded_events_and_continues() {
    let portico = recording().await;
    let admin = portico.admin();
    let is_about =
        |event: &Value, uri: &str| event["requestURI"] == uri && event["stage"] == "ResponseComplete";
    admin.get("/api/v1/namespaces/before").await;
    eventually("the event is in the tail", || async {
        let all = admin.get("/console/data/audit").await.text();
        let found = all
            .lines()
            .any(|line| is_about(&serde_json::from_str(line).unwrap(), "/api/v1/namespaces/before"));
        if found { Ok(()) } else { Err(all) }
    })
    .await;
    let mut lines = follow(&admin, "/console/data/audit?watch=1").await;
    portico.anonymous().as_user("alice").get("/api/v1/namespaces/after").await;
    loop {
        let event = lines.next().await.expect("the stream continues");
        if is_about(&event, "/api/v1/namespaces/after") {
            assert_eq!(
                (&event["user"]["username"], &event["responseStatus"]["code"]),
                (&json!("alice"), &json!(403))
            );
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_tail_keeps_requests_of_browsers_apart() {
    let portico = recording().await;
    let admin = portico.admin();
    let request =
        Request::get("/api/v1/namespaces/by-browser").header("user-agent", "Mozilla/5.0 (X11; Linux)");
    admin.fetch(request.body(Full::default()).unwrap()).await.unwrap();
    admin.get("/api/v1/namespaces/by-program").await;
    for (query, own, other) in
        [("", "by-program", "by-browser"), ("?browsers=true", "by-browser", "by-program")]
    {
        eventually("the event is in the tail", || async {
            let all = admin.get(&format!("/console/data/audit{query}")).await.text();
            assert!(!all.contains(other), "{all}");
            if all.contains(own) { Ok(()) } else { Err(all) }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_when_the_facade_stops() {
    let mut portico = recording().await;
    let mut lines = follow(&portico.admin(), "/console/data/audit?watch=true").await;
    portico.signal(rustix::process::Signal::TERM);
    while lines.next().await.is_some() {}
    wait_until("the process has ended", || std::future::ready(!portico.is_running())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_audit_the_tail_names_the_missing_flags() {
    let portico = Portico::start().await;
    let answer = portico.admin().get("/console/data/audit").await;
    let status = answer.status_body(404, "NotFound");
    assert!(status["message"].as_str().unwrap().contains("--audit-policy-file"), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_path_needs_a_separate_permission() {
    let portico = recording().await;
    let (anyone, alice, admin) = (portico.anonymous(), portico.anonymous().as_user("alice"), portico.admin());
    for path in ["/console/data/last-hour", "/console/data/audit"] {
        assert_eq!(anyone.get(path).await.status, 403, "{path}");
        alice.get(path).await.status_body(403, "Forbidden");
        assert_eq!(admin.get(path).await.status, 200, "{path}");
        assert_eq!(admin.request(Method::POST, path, "application/json", "{}").await.status, 405, "{path}");
    }
    for path in [EXPLAIN, ROUTES, FACADES, WATCH_FACADES, CHECK] {
        assert_eq!(anyone.post(path, &json!({})).await.status, 403, "{path}");
        alice.post(path, &json!({})).await.status_body(403, "Forbidden");
    }
    let blocks = include_str!("../../../docs/guides/console.md").split("```yaml\n").skip(1);
    let role =
        blocks.filter_map(|block| block.split("```").next()).find(|role| role.contains("console-viewer"));
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "viewers"}, "subjects": [{"kind": "User", "name": "alice"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "console-viewer"}});
    let roles = "/apis/rbac.authorization.k8s.io/v1";
    let created = admin
        .request(Method::POST, &format!("{roles}/clusterroles"), "application/yaml", role.unwrap())
        .await;
    assert_eq!(created.status, 201, "{}", created.text());
    assert_eq!(admin.post(&format!("{roles}/clusterrolebindings"), &binding).await.status, 201);
    assert_eq!(alice.get("/console/data/last-hour").await.status, 200);
    assert_eq!(alice.get("/apis/apiregistration.k8s.io/v1/apiservices").await.status, 200);
    let answer = alice.post(ROUTES, &json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(watch_facades(&alice).await.next().await.is_some());
    assert_eq!(alice.post(FACADES, &json!({})).await.status, 403);
    assert_eq!(alice.get("/console/data/audit").await.status, 403);
    assert_eq!(alice.post(CHECK, &json!({})).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_names_the_stage_that_fails_and_the_list_its_backend() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let backend = Backend::with_names("wrong.example.com", &["another.name"]).await;
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    assert_eq!(admin.post(services, &backend.api_service()).await.status, 201);
    let failing = eventually("Explain reports the failing stage", || async {
        let answer = admin.post(EXPLAIN, &json!({"subject": backend.name()})).await.json();
        let stages = answer["stages"].as_array().cloned().unwrap_or_default();
        let failing = stages.into_iter().find(|stage| stage["ok"] == false && stage["stage"] == "tls");
        failing.ok_or(answer)
    })
    .await;
    assert!(
        !failing["message"].as_str().unwrap().is_empty() && failing["seenBy"][0] == "control",
        "{failing}"
    );
    let listed = admin.post(ROUTES, &json!({"group": "wrong.example.com"})).await.json();
    assert_eq!(listed["routes"][0]["targets"][0], backend.address.to_string(), "{listed}");
    let facades = admin.post(FACADES, &json!({})).await.json();
    assert_eq!(facades["facades"][0]["address"], "in-process", "{facades}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checked_definition_has_findings_and_is_not_written() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.x.io}\n\
        spec: {group: x.io, scope: Cluster, names: {plural: others, kind: Thing}, versions: []}\n";
    let body = json!({"definition": base64(definition), "mediaType": "application/yaml"});
    let answer = admin.post(CHECK, &body).await.json();
    assert_eq!((&answer["name"], &answer["installed"]), (&json!("things.x.io"), &json!(false)), "{answer}");
    assert_eq!(answer["findings"][0]["kind"], "KIND_ERROR", "{answer}");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.x.io";
    assert_eq!(admin.get(definitions).await.status, 404);
}

fn base64(text: &str) -> String {
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text)
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_messages_are_refused_with_a_status() {
    let portico = Launch::new().args(&["--max-request-body-bytes", "100000"]).start().await;
    let admin = portico.admin();
    for body in ["", "{", "[]", r#"{"subject": 5}"#, r#"{"subjects": "x"}"#] {
        let answer = admin.request(Method::POST, EXPLAIN, "application/json", body).await;
        answer.status_body(400, "BadRequest");
    }
    admin.post(EXPLAIN, &json!({"subject": "no subject at all"})).await.status_body(400, "BadRequest");
    admin.post(CHECK, &json!({"definition": "no base64!"})).await.status_body(400, "BadRequest");
    let html = admin.request(Method::POST, EXPLAIN, "text/plain", "{}").await;
    html.status_body(415, "UnsupportedMediaType");
    assert_eq!(admin.get(EXPLAIN).await.status, 405);
    let long = json!({"subject": "x".repeat(200_000)});
    admin.post(EXPLAIN, &long).await.status_body(413, "RequestEntityTooLarge");
    assert_eq!(admin.post("/grpc/portico.admin.v1.Admin/Metrics", &json!({})).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn facades_report_their_state_and_certificate_expiry() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let mut lines = watch_facades(&admin).await;
    let usages = |line: &Value| {
        let all = line["result"]["certificates"].as_array().unwrap().iter();
        all.map(|one| one["usage"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let own = lines.next().await.unwrap();
    assert_eq!(own["result"]["facade"], Value::Null);
    assert_eq!(usages(&own), ["serving gRPC", "internal CA", "front-proxy CA", "client of backends"]);
    let ends =
        own["result"]["certificates"][0]["notAfter"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert!(ends > jiff::Timestamp::now(), "{own}");
    let (mut loads, mut backends, mut failing) = (0, Vec::new(), Value::Null);
    while loads < 2 {
        let line = lines.next().await.expect("the stream continues");
        assert_eq!(line["result"]["facade"]["address"], "in-process", "{line}");
        loads += line["result"]["loads"].as_array().unwrap().len();
        (backends, failing) = (usages(&line), line["result"]["failing"].clone());
    }
    assert!(backends.contains(&"serving".to_owned()) && failing == json!([]), "{backends:?}, {failing}");
    // A later client gets the earlier samples.
    let mut later = watch_facades(&admin).await;
    later.next().await.unwrap();
    let first = later.next().await.unwrap();
    let loads = first["result"]["loads"].as_array().unwrap();
    assert!(loads.len() >= 2, "{first}");
    assert!(loads[0]["memoryBytes"].as_str().unwrap().parse::<u64>().unwrap() > 1 << 20, "{first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ejection_and_return_of_an_address_are_streamed() {
    let portico = Portico::start().await;
    let (admin, backend) = (portico.admin(), Backend::start("ejected.example.com").await);
    assert_eq!(admin.post(API_SERVICES, &ejecting(&backend)).await.status, 201);
    let path = backend.path("/namespaces/default/flunders");
    wait_until("the backend answers", || async { admin.get(&path).await.status == 200 }).await;
    let mut lines =
        follow(&admin, &format!("/console/data/backends?watch=true&name={}", backend.name())).await;
    let first = lines.next().await.unwrap();
    let target = &first["backends"][0]["targets"][0];
    assert_eq!(
        target["ejection"],
        json!({"out": false, "failures": 0, "since": "", "triedAt": ""}),
        "{first}"
    );
    assert_eq!(target["weight"], 1);
    backend.set_behavior(Behavior::Code(503));
    for _ in 0..2 {
        assert_eq!(admin.get(&path).await.status, 503);
    }
    let ejection = async |lines: &mut JsonLines, out: bool| loop {
        let line = lines.next().await.expect("the stream continues");
        let ejection = line["backends"][0]["targets"][0]["ejection"].clone();
        if ejection["out"] == out && (out || ejection["since"] != "") {
            return ejection;
        }
    };
    let ejected = ejection(&mut lines, true).await;
    assert!(
        ejected["failures"].as_u64().unwrap() >= 2 && ejected["triedAt"].as_str().unwrap().ends_with('Z'),
        "{ejected}"
    );
    backend.set_behavior(Behavior::Normal);
    wait_until("the backend answers again", || async { admin.get(&path).await.status == 200 }).await;
    let back = ejection(&mut lines, false).await;
    assert_eq!((&back["failures"], &back["triedAt"]), (&json!(0), &json!("")), "{back}");
}

/// Returns an APIService of this backend whose address is ejected after two failures, for longer than the test takes.
pub(super) fn ejecting(backend: &Backend) -> Value {
    let mut object = backend.api_service();
    let annotations = &mut object["metadata"]["annotations"];
    annotations["portico.dev/backend-urls"] = json!(backend.url());
    for (name, value) in [("ejection-failures", "2"), ("ejection-time", "500ms"), ("weights", "1")] {
        annotations[format!("portico.dev/backend-{name}")] = json!(value);
    }
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn backends_are_shown_as_the_requests_of_this_facade_have_found_them() {
    let portico = Portico::start().await;
    let (admin, backend) = (portico.admin(), Backend::start("seen.example.com").await);
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    assert_eq!(admin.post(services, &backend.api_service()).await.status, 201);
    wait_until("the backend answers", || async {
        admin.get(&backend.path("/namespaces/default/flunders")).await.status == 200
    })
    .await;
    let listed = admin.get("/console/data/backends").await.json();
    let all = listed["backends"].as_array().unwrap();
    let one = all.iter().find(|one| one["name"] == backend.name().as_str()).unwrap();
    assert_eq!(one["targets"].as_array().unwrap().len(), 1, "{one}");
    let target = &one["targets"][0];
    assert_eq!(
        (&target["target"], &target["circuitOpen"]),
        (&json!(backend.address.to_string()), &json!(false))
    );
    assert_eq!((&target["failed"], &target["failures"]), (&json!(""), &json!(0)), "{target}");
    assert!(target["since"].as_str().unwrap().ends_with('Z'), "{target}");
    assert_eq!(portico.anonymous().as_user("alice").get("/console/data/backends").await.status, 403);
}
