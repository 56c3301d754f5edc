//! `portico route try`: one request with all of its stages; requests are only sent if permitted.

use std::process::Command;

use http::{Method, Request};
use http_body_util::Full;
use portico_tests::backend::{Backend, Behavior};
use portico_tests::objects::API_SERVICES;
use portico_tests::{Portico, binary, wait_until};
use serde_json::{Value, json};

const GROUP: &str = "tried.example.com";
const PATH: &str = "/apis/tried.example.com/v1/flunders";

async fn serve(portico: &Portico, object: &Value) {
    let created = portico.admin().post(API_SERVICES, object).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let discovery = "/apis/tried.example.com/v1";
    wait_until("the API is served", async || portico.admin().get(discovery).await.status == 200).await;
}

/// Runs `portico route try`; returns its output and exit code.
fn try_text(portico: &Portico, arguments: &[&str]) -> (String, Option<i32>) {
    let mut command = Command::new(binary());
    command.args(["route", "try"]).args(arguments);
    let output = command.env("KUBECONFIG", portico.data().join("admin.kubeconfig")).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.code())
}

/// Runs `portico route try`; returns its JSON output and exit code.
fn try_json(portico: &Portico, arguments: &[&str]) -> (Value, Option<i32>) {
    let (text, code) = try_text(portico, &[arguments, &["-o", "json"]].concat());
    (serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}")), code)
}

fn stage<'a>(trace: &'a Value, name: &str) -> &'a Value {
    let stages = trace["stages"].as_array().unwrap();
    stages.iter().rev().find(|stage| stage["stage"] == name).unwrap_or_else(|| panic!("no {name}: {trace:#}"))
}

fn mentions(stage: &Value, words: &str) -> bool {
    stage["message"].as_str().unwrap().contains(words)
}

/// Returns an APIService of two backends, each of which is ejected for this time after one failure.
fn ejecting(one: &Backend, two: &Backend, time: &str) -> Value {
    let mut object = one.api_service();
    let annotations = &mut object["metadata"]["annotations"];
    annotations["portico.dev/backend-urls"] = json!(format!("{},{}", one.url(), two.url()));
    annotations["portico.dev/backend-ejection-failures"] = json!("1");
    annotations["portico.dev/backend-ejection-time"] = json!(time);
    let spec = object["spec"].as_object_mut().unwrap();
    spec.remove("caBundle");
    spec.insert("insecureSkipTLSVerify".to_owned(), json!(true));
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successful_read_shows_every_stage() {
    let portico = Portico::start().await;
    let backend = Backend::start(GROUP).await;
    serve(&portico, &backend.api_service()).await;
    let (trace, code) = try_json(&portico, &[PATH]);
    assert_eq!(
        (code, &trace["ok"], &trace["sent"], &trace["code"]),
        (Some(0), &json!(true), &json!(true), &json!(200))
    );
    let names: Vec<&str> =
        trace["stages"].as_array().unwrap().iter().map(|stage| stage["stage"].as_str().unwrap()).collect();
    let order = [
        "listener",
        "authentication",
        "flow",
        "authorization",
        "router",
        "backend",
        "connection",
        "response",
        "body",
    ];
    let shown: Vec<&str> = names.iter().copied().filter(|name| order.contains(name)).collect();
    assert_eq!(shown, order, "{trace:#}");
    assert!(mentions(stage(&trace, "authentication"), "system:masters"));
    assert!(mentions(
        stage(&trace, "router"),
        "APIService v1.tried.example.com: Service default/backend:443"
    ));
    assert!(mentions(stage(&trace, "flow"), "PriorityLevel \"exempt\""), "{trace:#}");
    assert!(mentions(stage(&trace, "connection"), "HTTP/1.1"));
    assert_eq!(
        trace["endpoints"],
        json!([{"endpoint": backend.address.to_string(), "state": "chosen", "message": ""}])
    );
    assert!(trace["bytes"].as_u64().unwrap() > 0 && trace["wholeMs"].as_f64().unwrap() > 0.0);
    // Traced requests use connections of the backend, as other requests do.
    wait_until("a connection is used again", async || {
        mentions(stage(&try_json(&portico, &[PATH]).0, "connection"), "reused")
    })
    .await;
    let (text, _) = try_text(&portico, &[PATH]);
    assert!(text.starts_with(&format!("GET {PATH}: 200 after ")) && text.contains("STAGE"), "{text}");
    let (yaml, code) = try_text(&portico, &[PATH, "-o", "yaml"]);
    assert!(yaml.contains("stage: authorization") && code == Some(0), "{yaml}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ejected_address_is_shown_and_another_one_used() {
    let portico = Portico::start().await;
    let (one, two) = (Backend::start(GROUP).await, Backend::start(GROUP).await);
    serve(&portico, &ejecting(&one, &two, "60s")).await;
    one.set_behavior(Behavior::Code(503));
    wait_until("the failing address is ejected", async || {
        portico.admin().get(PATH).await;
        try_json(&portico, &[PATH]).0["endpoints"][0]["state"] == "ejected"
    })
    .await;
    for _ in 0..3 {
        let (trace, code) = try_json(&portico, &[PATH]);
        assert_eq!((code, &trace["endpoints"][1]["state"]), (Some(0), &json!("chosen")), "{trace:#}");
        assert_eq!(stage(&trace, "backend")["message"], two.address.to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_without_a_request_do_not_extend_an_ejection() {
    let portico = Portico::start().await;
    let (one, two) = (Backend::start(GROUP).await, Backend::start(GROUP).await);
    let object = ejecting(&one, &two, "1s");
    serve(&portico, &object).await;
    one.set_behavior(Behavior::Code(503));
    wait_until("the failing address is ejected", async || {
        portico.admin().get(PATH).await;
        try_json(&portico, &[PATH]).0["endpoints"][0]["state"] == "ejected"
    })
    .await;
    one.set_behavior(Behavior::Normal);
    let request_count = || one.requests().iter().filter(|seen| seen.target.starts_with(PATH)).count();
    let before = request_count();
    // Each trace precedes a request: it would take every probe of the address.
    wait_until("a request probes the ejected address", async || {
        try_json(&portico, &["-X", "DELETE", &format!("{PATH}/one")]);
        portico.admin().get(PATH).await;
        request_count() > before
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_backends_are_reported_by_stage() {
    let portico = Portico::start().await;
    let mut backend = Backend::start(GROUP).await;
    serve(&portico, &backend.api_service()).await;
    backend.stop().await;
    let (trace, code) = try_json(&portico, &[PATH]);
    assert_eq!((code, &trace["ok"], &trace["code"]), (Some(1), &json!(false), &json!(503)), "{trace:#}");
    let failed: Vec<&Value> =
        trace["stages"].as_array().unwrap().iter().filter(|stage| stage["ok"] == json!(false)).collect();
    assert!(!failed.is_empty() && !failed[0]["message"].as_str().unwrap().is_empty(), "{trace:#}");
    wait_until("the trace reports the API as unavailable", async || {
        let (trace, _) = try_json(&portico, &[PATH]);
        trace["stages"]
            .as_array()
            .unwrap()
            .iter()
            .any(|stage| stage["stage"] == "available" && stage["ok"] == json!(false))
    })
    .await;
    let (text, _) = try_text(&portico, &[PATH]);
    assert!(text.contains("fails at available with 503"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_requests_end_at_the_refusing_stage() {
    let portico = Portico::start().await;
    let backend = Backend::start(GROUP).await;
    serve(&portico, &backend.api_service()).await;
    let before = backend.requests().len();
    let (trace, code) = try_json(&portico, &[PATH, "--as", "alice", "--as-group", "dev"]);
    assert_eq!((code, &trace["code"]), (Some(1), &json!(403)), "{trace:#}");
    assert!(mentions(stage(&trace, "impersonation"), "as \"alice\" (groups: dev"));
    assert!(
        stage(&trace, "authorization")["ok"] == json!(false)
            && mentions(stage(&trace, "authorization"), "\"alice\" may not: no rule allows it")
    );
    assert_eq!(backend.requests().len(), before);
    let (trace, code) = try_json(&portico, &["/nowhere"]);
    assert_eq!((code, &trace["code"]), (Some(1), &json!(404)), "{trace:#}");
    assert!(stage(&trace, "router")["ok"] == json!(false) && mentions(stage(&trace, "router"), "not found"));
    let (trace, code) = try_json(&portico, &["/api/v1/namespaces/default"]);
    assert_eq!(code, Some(0), "{trace:#}");
    assert!(mentions(stage(&trace, "router"), "the control service: a built-in resource"));
    assert!(mentions(stage(&trace, "response"), "200"), "{trace:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_sent_only_if_requested() {
    let portico = Portico::start().await;
    let backend = Backend::start(GROUP).await;
    serve(&portico, &backend.api_service()).await;
    let before = backend.requests().len();
    let (trace, code) = try_json(&portico, &[PATH, "-X", "POST"]);
    assert_eq!((code, &trace["sent"], &trace["code"]), (Some(0), &json!(false), &Value::Null), "{trace:#}");
    assert!(
        mentions(stage(&trace, "request"), "not sent to the backend")
            && stage(&trace, "connection")["ok"] == json!(true)
    );
    assert_eq!(backend.requests().len(), before);
    let file = portico.folder().join("map.yaml");
    std::fs::write(&file, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tried}\n").unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    let write = [maps, "-X", "POST", "-f", file.to_str().unwrap()];
    let (text, code) = try_text(&portico, &write);
    assert!(code == Some(0) && text.contains("could be sent (--send sends it)"), "{text}");
    assert_eq!(portico.admin().get(&format!("{maps}/tried")).await.status, 404);
    let (trace, code) = try_json(&portico, &[&write[..], &["--send"]].concat());
    assert_eq!((code, &trace["sent"], &trace["code"]), (Some(0), &json!(true), &json!(201)), "{trace:#}");
    assert_eq!(portico.admin().get(&format!("{maps}/tried")).await.status, 200);
    // Requests without an end are not sent.
    let (trace, _) = try_json(&portico, &[&format!("{maps}?watch=true")]);
    assert_eq!(trace["sent"], json!(false), "{trace:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_need_permission() {
    let portico = Portico::start().await;
    let (http, account) = (portico.admin(), "/api/v1/namespaces/default/serviceaccounts");
    let created = http
        .post(account, &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "viewer"}}))
        .await;
    assert_eq!(created.status, 201, "{}", created.text());
    let token = http.post(&format!("{account}/viewer/token"), &json!({"spec": {}})).await.json();
    let viewer = portico.anonymous().with_token(token["status"]["token"].as_str().unwrap());
    let trace = async || {
        let request =
            Request::builder().method(Method::GET).uri("/version").header("portico-route-try", "walk");
        viewer.fetch(request.body(Full::default()).unwrap()).await.unwrap()
    };
    let message = trace().await.status_body(403, "Forbidden")["message"].to_string();
    assert!(message.contains("/portico/route-try"), "{message}");
    let (role, rules) = (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        json!([{"nonResourceURLs": ["/portico/route-try"], "verbs": ["get"]}]),
    );
    let role = http.post(role, &json!({"metadata": {"name": "walks"}, "rules": rules})).await;
    assert_eq!(role.status, 201, "{}", role.text());
    let binding = json!({
        "metadata": {"name": "walks"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "walks"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "viewer"}],
    });
    let bound = http.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    assert_eq!(bound.status, 201, "{}", bound.text());
    wait_until("the binding is in effect", async || trace().await.status == 200).await;
    let trace = trace().await;
    assert!(
        trace.header("portico-route-try") == "walk"
            && mentions(stage(&trace.json(), "router"), "this facade")
    );
}

/// Returns the APIService with HTTP/2 enabled for the backend.
fn over_http2(backend: &Backend) -> Value {
    let mut object = backend.api_service();
    object["metadata"]["annotations"]["portico.dev/backend-protocol"] = json!("h2");
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_over_http2_shows_every_stage_and_shares_connections() {
    let portico = Portico::start().await;
    let backend = Backend::over_http2(GROUP).await;
    serve(&portico, &over_http2(&backend)).await;
    let before = backend.requests().len();
    let (trace, code) = try_json(&portico, &["-X", "DELETE", &format!("{PATH}/one")]);
    assert_eq!((code, &trace["sent"], &trace["code"]), (Some(0), &json!(false), &Value::Null), "{trace:#}");
    assert!(mentions(stage(&trace, "connection"), "HTTP/2"), "{trace:#}");
    assert_eq!(backend.requests().len(), before, "no request is sent");
    let (trace, code) = try_json(&portico, &[PATH]);
    assert_eq!((code, &trace["sent"], &trace["code"]), (Some(0), &json!(true), &json!(200)), "{trace:#}");
    assert!(mentions(stage(&trace, "connection"), "reused, HTTP/2"), "{trace:#}");
    assert!(mentions(stage(&trace, "response"), "200") && mentions(stage(&trace, "body"), ""), "{trace:#}");
    assert_eq!(trace["endpoints"][0]["state"], "chosen");
    let file = portico.folder().join("flunder.json");
    let body = json!({"kind": "Flunder", "spec": {"reference": "x".repeat(100_000)}});
    std::fs::write(&file, body.to_string()).unwrap();
    let write = [PATH, "-X", "POST", "-f", file.to_str().unwrap(), "--send"];
    let (trace, code) = try_json(&portico, &write);
    assert_eq!((code, &trace["sent"], &trace["code"]), (Some(0), &json!(true), &json!(200)), "{trace:#}");
    assert_eq!(serde_json::from_slice::<Value>(&backend.last_request().body).unwrap(), body);
    // The trace shows that a backend supports only HTTP/1.1.
    let old = Backend::start("old.example.com").await;
    let created = portico.admin().post(API_SERVICES, &over_http2(&old)).await;
    assert_eq!(created.status, 201, "{}", created.text());
    wait_until("the API is served", async || portico.admin().get(&old.path("")).await.status == 200).await;
    let (trace, code) = try_json(&portico, &[&old.path("/flunders")]);
    assert!(code == Some(0) && mentions(stage(&trace, "connection"), "HTTP/1.1"), "{trace:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_over_http2_names_the_failing_stage() {
    let portico = Portico::start().await;
    let mut backend = Backend::over_http2(GROUP).await;
    serve(&portico, &over_http2(&backend)).await;
    let failing = |trace: &Value| -> Vec<String> {
        let stages = trace["stages"].as_array().unwrap().iter();
        stages.filter(|stage| stage["ok"] == json!(false)).map(|stage| stage["message"].to_string()).collect()
    };
    // The backend resets the stream, and keeps the connection.
    backend.set_behavior(Behavior::Drop);
    let (trace, code) = try_json(&portico, &[PATH]);
    assert_eq!((code, &trace["ok"], &trace["code"]), (Some(1), &json!(false), &json!(503)), "{trace:#}");
    assert!(mentions(stage(&trace, "connection"), "HTTP/2") && failing(&trace).len() == 1, "{trace:#}");
    // The backend accepts the request and does not respond.
    backend.set_behavior(Behavior::Hang);
    let (trace, code) = try_json(&portico, &[&format!("{PATH}?timeout=1s")]);
    assert_eq!((code, &trace["ok"], &trace["code"]), (Some(1), &json!(false), &json!(504)), "{trace:#}");
    assert!(failing(&trace).len() == 1 && trace["sent"] == json!(true), "{trace:#}");
    backend.set_behavior(Behavior::Normal);
    let (trace, code) = try_json(&portico, &[PATH]);
    assert!(code == Some(0) && mentions(stage(&trace, "connection"), "reused, HTTP/2"), "{trace:#}");
    // The backend stops.
    backend.stop().await;
    let (trace, code) = try_json(&portico, &[PATH]);
    assert_eq!((code, &trace["ok"], &trace["code"]), (Some(1), &json!(false), &json!(503)), "{trace:#}");
    assert!(!failing(&trace).is_empty(), "{trace:#}");
}
