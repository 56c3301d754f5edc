//! `portico route try`: one request with all of its stages, and nothing sent that is not to be sent.

use std::process::Command;

use http::{Method, Request};
use http_body_util::Full;
use portico_tests::backend::{Backend, Mood};
use portico_tests::objects::API_SERVICES;
use portico_tests::{Portico, binary, until};
use serde_json::{Value, json};

const GROUP: &str = "tried.example.com";
const PATH: &str = "/apis/tried.example.com/v1/flunders";

async fn serve(portico: &Portico, object: &Value) {
    let created = portico.admin().post(API_SERVICES, object).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let discovery = "/apis/tried.example.com/v1";
    until("the API is served", async || portico.admin().get(discovery).await.status == 200).await;
}

/// What `portico route try` prints, and its exit code.
fn tried(portico: &Portico, arguments: &[&str]) -> (String, Option<i32>) {
    let mut command = Command::new(binary());
    command.args(["route", "try"]).args(arguments);
    let output = command.env("KUBECONFIG", portico.data().join("admin.kubeconfig")).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.code())
}

/// The same as JSON.
fn walked(portico: &Portico, arguments: &[&str]) -> (Value, Option<i32>) {
    let (text, code) = tried(portico, &[arguments, &["-o", "json"]].concat());
    (serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}")), code)
}

fn stage<'a>(walk: &'a Value, name: &str) -> &'a Value {
    let stages = walk["stages"].as_array().unwrap();
    stages.iter().rev().find(|stage| stage["stage"] == name).unwrap_or_else(|| panic!("no {name}: {walk:#}"))
}

fn says(stage: &Value, words: &str) -> bool {
    stage["message"].as_str().unwrap().contains(words)
}

/// An APIService of two backends, each of which is left out for so long when it fails once.
fn ejecting(one: &Backend, two: &Backend, time: &str) -> Value {
    let mut object = one.api_service();
    let known = &mut object["metadata"]["annotations"];
    known["portico.dev/backend-urls"] = json!(format!("{},{}", one.url(), two.url()));
    known["portico.dev/backend-ejection-failures"] = json!("1");
    known["portico.dev/backend-ejection-time"] = json!(time);
    let spec = object["spec"].as_object_mut().unwrap();
    spec.remove("caBundle");
    spec.insert("insecureSkipTLSVerify".to_owned(), json!(true));
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_is_answered_shows_every_stage() {
    let portico = Portico::start().await;
    let backend = Backend::start(GROUP).await;
    serve(&portico, &backend.api_service()).await;
    let (walk, code) = walked(&portico, &[PATH]);
    assert_eq!(
        (code, &walk["ok"], &walk["sent"], &walk["code"]),
        (Some(0), &json!(true), &json!(true), &json!(200))
    );
    let names: Vec<&str> =
        walk["stages"].as_array().unwrap().iter().map(|stage| stage["stage"].as_str().unwrap()).collect();
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
    assert_eq!(shown, order, "{walk:#}");
    assert!(says(stage(&walk, "authentication"), "system:masters"));
    assert!(says(stage(&walk, "router"), "APIService v1.tried.example.com: Service default/backend:443"));
    assert!(says(stage(&walk, "flow"), "PriorityLevel \"exempt\""), "{walk:#}");
    assert!(says(stage(&walk, "connection"), "HTTP/1.1"));
    assert_eq!(
        walk["endpoints"],
        json!([{"endpoint": backend.address.to_string(), "state": "chosen", "message": ""}])
    );
    assert!(walk["bytes"].as_u64().unwrap() > 0 && walk["wholeMs"].as_f64().unwrap() > 0.0);
    // Walks of one backend use its connections, as other requests do.
    until("a connection is used again", async || {
        says(stage(&walked(&portico, &[PATH]).0, "connection"), "reused")
    })
    .await;
    let (text, _) = tried(&portico, &[PATH]);
    assert!(text.starts_with(&format!("GET {PATH}: 200 after ")) && text.contains("STAGE"), "{text}");
    let (yaml, code) = tried(&portico, &[PATH, "-o", "yaml"]);
    assert!(yaml.contains("stage: authorization") && code == Some(0), "{yaml}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_left_out_is_named_and_another_one_is_chosen() {
    let portico = Portico::start().await;
    let (one, two) = (Backend::start(GROUP).await, Backend::start(GROUP).await);
    serve(&portico, &ejecting(&one, &two, "60s")).await;
    one.behave(Mood::Code(503));
    until("it is left out", async || {
        portico.admin().get(PATH).await;
        walked(&portico, &[PATH]).0["endpoints"][0]["state"] == "ejected"
    })
    .await;
    for _ in 0..3 {
        let (walk, code) = walked(&portico, &[PATH]);
        assert_eq!((code, &walk["endpoints"][1]["state"]), (Some(0), &json!("chosen")), "{walk:#}");
        assert_eq!(stage(&walk, "backend")["message"], two.address.to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn walks_that_send_nothing_keep_no_address_out() {
    let portico = Portico::start().await;
    let (one, two) = (Backend::start(GROUP).await, Backend::start(GROUP).await);
    let object = ejecting(&one, &two, "1s");
    serve(&portico, &object).await;
    one.behave(Mood::Code(503));
    until("it is left out", async || {
        portico.admin().get(PATH).await;
        walked(&portico, &[PATH]).0["endpoints"][0]["state"] == "ejected"
    })
    .await;
    one.behave(Mood::Well);
    let asked = || one.seen().iter().filter(|seen| seen.target.starts_with(PATH)).count();
    let before = asked();
    // Each walk comes before a request: it would take every try that the address gets.
    until("it is tried by a request", async || {
        walked(&portico, &["-X", "DELETE", &format!("{PATH}/one")]);
        portico.admin().get(PATH).await;
        asked() > before
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stage_is_named_at_which_a_backend_is_not_reached() {
    let portico = Portico::start().await;
    let mut backend = Backend::start(GROUP).await;
    serve(&portico, &backend.api_service()).await;
    backend.stop().await;
    let (walk, code) = walked(&portico, &[PATH]);
    assert_eq!((code, &walk["ok"], &walk["code"]), (Some(1), &json!(false), &json!(503)), "{walk:#}");
    let failed: Vec<&Value> =
        walk["stages"].as_array().unwrap().iter().filter(|stage| stage["ok"] == json!(false)).collect();
    assert!(!failed.is_empty() && !failed[0]["message"].as_str().unwrap().is_empty(), "{walk:#}");
    until("it is known to be unavailable", async || {
        let (walk, _) = walked(&portico, &[PATH]);
        walk["stages"]
            .as_array()
            .unwrap()
            .iter()
            .any(|stage| stage["stage"] == "available" && stage["ok"] == json!(false))
    })
    .await;
    let (text, _) = tried(&portico, &[PATH]);
    assert!(text.contains("fails at available with 503"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_and_what_is_not_there_end_where_that_is_found() {
    let portico = Portico::start().await;
    let backend = Backend::start(GROUP).await;
    serve(&portico, &backend.api_service()).await;
    let before = backend.seen().len();
    let (walk, code) = walked(&portico, &[PATH, "--as", "alice", "--as-group", "dev"]);
    assert_eq!((code, &walk["code"]), (Some(1), &json!(403)), "{walk:#}");
    assert!(says(stage(&walk, "impersonation"), "as \"alice\" (groups: dev"));
    assert!(
        stage(&walk, "authorization")["ok"] == json!(false)
            && says(stage(&walk, "authorization"), "\"alice\" may not: no rule allows it")
    );
    assert_eq!(backend.seen().len(), before);
    let (walk, code) = walked(&portico, &["/nowhere"]);
    assert_eq!((code, &walk["code"]), (Some(1), &json!(404)), "{walk:#}");
    assert!(stage(&walk, "router")["ok"] == json!(false) && says(stage(&walk, "router"), "not found"));
    let (walk, code) = walked(&portico, &["/api/v1/namespaces/default"]);
    assert_eq!(code, Some(0), "{walk:#}");
    assert!(says(stage(&walk, "router"), "the control service: a built-in resource"));
    assert!(says(stage(&walk, "response"), "200"), "{walk:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_sent_only_when_that_is_asked_for() {
    let portico = Portico::start().await;
    let backend = Backend::start(GROUP).await;
    serve(&portico, &backend.api_service()).await;
    let before = backend.seen().len();
    let (walk, code) = walked(&portico, &[PATH, "-X", "POST"]);
    assert_eq!((code, &walk["sent"], &walk["code"]), (Some(0), &json!(false), &Value::Null), "{walk:#}");
    assert!(
        says(stage(&walk, "request"), "not sent to the backend")
            && stage(&walk, "connection")["ok"] == json!(true)
    );
    assert_eq!(backend.seen().len(), before);
    let file = portico.folder().join("map.yaml");
    std::fs::write(&file, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tried}\n").unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    let write = [maps, "-X", "POST", "-f", file.to_str().unwrap()];
    let (text, code) = tried(&portico, &write);
    assert!(code == Some(0) && text.contains("could be sent (--send sends it)"), "{text}");
    assert_eq!(portico.admin().get(&format!("{maps}/tried")).await.status, 404);
    let (walk, code) = walked(&portico, &[&write[..], &["--send"]].concat());
    assert_eq!((code, &walk["sent"], &walk["code"]), (Some(0), &json!(true), &json!(201)), "{walk:#}");
    assert_eq!(portico.admin().get(&format!("{maps}/tried")).await.status, 200);
    // What may last for ever is not sent.
    let (walk, _) = walked(&portico, &[&format!("{maps}?watch=true")]);
    assert_eq!(walk["sent"], json!(false), "{walk:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn walks_are_for_those_who_may_see_them() {
    let portico = Portico::start().await;
    let (http, account) = (portico.admin(), "/api/v1/namespaces/default/serviceaccounts");
    let created = http
        .post(account, &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "viewer"}}))
        .await;
    assert_eq!(created.status, 201, "{}", created.text());
    let token = http.post(&format!("{account}/viewer/token"), &json!({"spec": {}})).await.json();
    let viewer = portico.anyone().with_token(token["status"]["token"].as_str().unwrap());
    let walk = async || {
        let request =
            Request::builder().method(Method::GET).uri("/version").header("portico-route-try", "walk");
        viewer.fetch(request.body(Full::default()).unwrap()).await.unwrap()
    };
    let message = walk().await.status_body(403, "Forbidden")["message"].to_string();
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
    until("it is seen", async || walk().await.status == 200).await;
    let walk = walk().await;
    assert!(walk.header("portico-route-try") == "walk" && says(stage(&walk.json(), "router"), "this facade"));
}

/// The same APIService, whose backend is spoken to over HTTP/2.
fn over_http2(backend: &Backend) -> Value {
    let mut object = backend.api_service();
    object["metadata"]["annotations"]["portico.dev/backend-protocol"] = json!("h2");
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_over_http2_shows_every_stage_and_uses_the_connections_of_others() {
    let portico = Portico::start().await;
    let backend = Backend::over_http2(GROUP).await;
    serve(&portico, &over_http2(&backend)).await;
    let before = backend.seen().len();
    let (walk, code) = walked(&portico, &["-X", "DELETE", &format!("{PATH}/one")]);
    assert_eq!((code, &walk["sent"], &walk["code"]), (Some(0), &json!(false), &Value::Null), "{walk:#}");
    assert!(says(stage(&walk, "connection"), "HTTP/2"), "{walk:#}");
    assert_eq!(backend.seen().len(), before, "nothing is sent");
    let (walk, code) = walked(&portico, &[PATH]);
    assert_eq!((code, &walk["sent"], &walk["code"]), (Some(0), &json!(true), &json!(200)), "{walk:#}");
    assert!(says(stage(&walk, "connection"), "reused, HTTP/2"), "{walk:#}");
    assert!(says(stage(&walk, "response"), "200") && says(stage(&walk, "body"), ""), "{walk:#}");
    assert_eq!(walk["endpoints"][0]["state"], "chosen");
    let file = portico.folder().join("flunder.json");
    let body = json!({"kind": "Flunder", "spec": {"reference": "x".repeat(100_000)}});
    std::fs::write(&file, body.to_string()).unwrap();
    let write = [PATH, "-X", "POST", "-f", file.to_str().unwrap(), "--send"];
    let (walk, code) = walked(&portico, &write);
    assert_eq!((code, &walk["sent"], &walk["code"]), (Some(0), &json!(true), &json!(200)), "{walk:#}");
    assert_eq!(serde_json::from_slice::<Value>(&backend.last().body).unwrap(), body);
    // A backend that speaks HTTP/1.1 alone is reached, and that is shown.
    let old = Backend::start("old.example.com").await;
    let created = portico.admin().post(API_SERVICES, &over_http2(&old)).await;
    assert_eq!(created.status, 201, "{}", created.text());
    until("it is served", async || portico.admin().get(&old.path("")).await.status == 200).await;
    let (walk, code) = walked(&portico, &[&old.path("/flunders")]);
    assert!(code == Some(0) && says(stage(&walk, "connection"), "HTTP/1.1"), "{walk:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_over_http2_names_the_stage_at_which_a_backend_fails() {
    let portico = Portico::start().await;
    let mut backend = Backend::over_http2(GROUP).await;
    serve(&portico, &over_http2(&backend)).await;
    let failing = |walk: &Value| -> Vec<String> {
        let stages = walk["stages"].as_array().unwrap().iter();
        stages.filter(|stage| stage["ok"] == json!(false)).map(|stage| stage["message"].to_string()).collect()
    };
    // The stream is reset, and the connection stays.
    backend.behave(Mood::Drop);
    let (walk, code) = walked(&portico, &[PATH]);
    assert_eq!((code, &walk["ok"], &walk["code"]), (Some(1), &json!(false), &json!(503)), "{walk:#}");
    assert!(says(stage(&walk, "connection"), "HTTP/2") && failing(&walk).len() == 1, "{walk:#}");
    // It takes the request and does not answer.
    backend.behave(Mood::Hang);
    let (walk, code) = walked(&portico, &[&format!("{PATH}?timeout=1s")]);
    assert_eq!((code, &walk["ok"], &walk["code"]), (Some(1), &json!(false), &json!(504)), "{walk:#}");
    assert!(failing(&walk).len() == 1 && walk["sent"] == json!(true), "{walk:#}");
    backend.behave(Mood::Well);
    let (walk, code) = walked(&portico, &[PATH]);
    assert!(code == Some(0) && says(stage(&walk, "connection"), "reused, HTTP/2"), "{walk:#}");
    // It is gone.
    backend.stop().await;
    let (walk, code) = walked(&portico, &[PATH]);
    assert_eq!((code, &walk["ok"], &walk["code"]), (Some(1), &json!(false), &json!(503)), "{walk:#}");
    assert!(!failing(&walk).is_empty(), "{walk:#}");
}
