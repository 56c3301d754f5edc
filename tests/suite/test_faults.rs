//! Test faults (`--test-faults`), set with `portico-testing` and observed by kube-rs, and a server that ends with its parent.

use std::pin::pin;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures::StreamExt;
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::core::WatchEvent;
use kube::runtime::reflector::Store;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use portico_testing::{Error, Fault, TestServer};
use portico_tests::{WAIT_LIMIT, binary, wait_until};
use serde_json::{Value, json};

async fn server() -> TestServer {
    portico_tests::install_provider();
    TestServer::options().program(binary()).start().await.unwrap()
}

fn config_maps(server: &TestServer) -> Api<ConfigMap> {
    Api::default_namespaced(server.client())
}

fn named(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

fn labelled(value: &str) -> Patch<Value> {
    Patch::Merge(json!({"metadata": {"labels": {"a": value}}}))
}

/// Returns code and reason of a refused request.
fn refused<T>(answer: Result<T, kube::Error>) -> (u16, String) {
    match answer {
        Err(kube::Error::Api(status)) => (status.code, status.reason.clone()),
        Err(other) => panic!("no refusal: {other}"),
        Ok(_) => panic!("no refusal"),
    }
}

/// Sends a request for faults unchanged; returns the code and the body.
async fn send_raw(
    client: &Client,
    method: &str,
    path: &str,
    body: &str,
    user: Option<&str>,
) -> (u16, String) {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = user.into_iter().fold(request, |request, user| request.header("impersonate-user", user));
    let response = client.send(request.body(body.as_bytes().to_vec().into()).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_affect_only_their_resources() {
    let server = server().await;
    let (api, secrets) = (config_maps(&server), Api::<Secret>::default_namespaced(server.client()));
    let maps = |fault: Fault| fault.resource("", "configmaps");

    let latency = server.fault(maps(Fault::latency(Duration::from_millis(300)).times(1))).await.unwrap();
    secrets.list(&ListParams::default()).await.unwrap();
    assert_eq!(latency.hits().await.unwrap(), 0);
    let begin = Instant::now();
    api.create(&PostParams::default(), &named("a")).await.unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(300));
    assert_eq!(latency.remove().await.unwrap(), 1);

    for (fault, expected) in [
        (Fault::conflict(), (409, "Conflict")),
        (Fault::status(409).reason("AlreadyExists"), (409, "AlreadyExists")),
        (Fault::expired(), (410, "Expired")),
        (Fault::status(500), (500, "InternalError")),
    ] {
        let set = server.fault(maps(fault).verbs(["patch"]).name("a").times(1)).await.unwrap();
        api.get("a").await.unwrap();
        let (code, reason) = refused(api.patch("a", &PatchParams::default(), &labelled("1")).await);
        assert_eq!((code, reason.as_str()), expected);
        api.patch("a", &PatchParams::default(), &labelled("1")).await.unwrap();
        assert_eq!(set.remove().await.unwrap(), 1);
    }
    let already_exists = maps(Fault::status(409).reason("AlreadyExists")).verbs(["create"]).times(1);
    let set = server.fault(already_exists).await.unwrap();
    let Err(kube::Error::Api(status)) = api.create(&PostParams::default(), &named("taken")).await else {
        panic!("no refusal");
    };
    assert_eq!(status.message, "configmaps \"taken\" already exists");
    assert_eq!(set.remove().await.unwrap(), 1);
    // kube-rs retries these automatically.
    for fault in [Fault::too_many_requests(1), Fault::unavailable()] {
        let set = server.fault(maps(fault).verbs(["get"]).times(1)).await.unwrap();
        api.get("a").await.unwrap();
        assert_eq!(set.remove().await.unwrap(), 1);
    }

    let lost = server.fault(maps(Fault::drop_request()).verbs(["create"])).await.unwrap();
    let broken = api.create(&PostParams::default(), &named("lost")).await.unwrap_err();
    assert!(!matches!(broken, kube::Error::Api(_)), "{broken}");
    lost.remove().await.unwrap();
    assert_eq!(api.get_opt("lost").await.unwrap(), None);
    let lost = server.fault(maps(Fault::drop_answer()).verbs(["create"])).await.unwrap();
    api.create(&PostParams::default(), &named("done")).await.unwrap_err();
    assert!(lost.remove().await.unwrap() > 0);
    assert!(api.get_opt("done").await.unwrap().is_some(), "the answer was lost, and not the write");
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_reads_respect_resource_versions() {
    let server = server().await;
    let api = config_maps(&server);
    api.create(&PostParams::default(), &named("a")).await.unwrap();
    let plain = PatchParams::default();
    let stale = server.fault(Fault::stale_reads().resource("", "configmaps")).await.unwrap();
    let changed = api.patch("a", &plain, &labelled("new")).await.unwrap();
    api.create(&PostParams::default(), &named("b")).await.unwrap();

    let old = api.get("a").await.unwrap();
    assert!(old.metadata.labels.is_none() && old.metadata.name.as_deref() == Some("a"));
    assert_eq!(api.get_metadata("a").await.unwrap().metadata, old.metadata);
    assert_eq!(api.get_opt("b").await.unwrap(), None);
    let names = |list: kube::core::ObjectList<ConfigMap>| -> Vec<String> {
        list.items.into_iter().filter_map(|item| item.metadata.name).filter(|name| name.len() == 1).collect()
    };
    assert_eq!(names(api.list(&ListParams::default()).await.unwrap()), ["a"]);
    let newer = ListParams::default().at(changed.metadata.resource_version.as_deref().unwrap());
    let newer = newer.matching(kube::api::VersionMatch::NotOlderThan);
    assert!(
        names(api.list(&newer).await.unwrap()).contains(&"b".to_owned()),
        "the list is as new as requested"
    );
    // A write based on a stale read conflicts.
    let mut written = old.clone();
    written.data = Some([("k".to_owned(), "v".to_owned())].into());
    assert_eq!(refused(api.replace("a", &PostParams::default(), &written).await).0, 409);
    assert_eq!(stale.remove().await.unwrap(), 4);
    assert!(api.get("a").await.unwrap().metadata.labels.is_some());
    assert_eq!(names(api.list(&ListParams::default()).await.unwrap()), ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_watch_can_be_paused_and_cut() {
    let server = server().await;
    let api = config_maps(&server);
    let listed = api.list(&ListParams::default()).await.unwrap();
    let from = listed.metadata.resource_version.unwrap();
    let mut events = pin!(api.watch(&WatchParams::default(), &from).await.unwrap());
    let stale = server.fault(Fault::stale_reads().resource("", "configmaps")).await.unwrap();
    api.create(&PostParams::default(), &named("a")).await.unwrap();
    let waits = tokio::time::timeout(Duration::from_millis(300), events.next()).await;
    assert!(waits.is_err(), "{waits:?}");
    assert_eq!(stale.remove().await.unwrap(), 1);
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Added(_)))));

    let cut = server.fault(Fault::cut_watch().after_events(2).resource("", "configmaps")).await.unwrap();
    for name in ["b", "c"] {
        api.create(&PostParams::default(), &named(name)).await.unwrap();
    }
    for _ in 0..2 {
        assert!(matches!(events.next().await, Some(Ok(WatchEvent::Added(_)))));
    }
    match events.next().await {
        Some(Err(_)) | None => {}
        other => panic!("the watch continues: {other:?}"),
    }
    assert_eq!(cut.hits().await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reflector_recovers_from_cut_and_expired_watches() {
    let server = server().await;
    let api = config_maps(&server);
    let (reader, writer) = kube::runtime::reflector::store();
    let stream = watcher(api.clone(), watcher::Config::default()).default_backoff().reflect(writer);
    let mut stream = pin!(stream.filter(|event| std::future::ready(event.is_ok())));
    for (name, fault) in [
        ("a", Fault::cut_watch()),
        ("b", Fault::cut_watch().clean()),
        ("c", Fault::expire_watch()),
        ("d", Fault::expire_watch().after(Duration::from_millis(20))),
    ] {
        api.create(&PostParams::default(), &named(name)).await.unwrap();
        wait_for_object(&reader, &mut stream, name).await;
        let set = server.fault(fault.resource("", "configmaps").times(1)).await.unwrap();
        let happened = wait_until("the watch has ended", async || set.hits().await.unwrap() == 1);
        tokio::select! {
            () = happened => {}
            () = async { while stream.next().await.is_some() {} } => panic!("the stream has ended"),
        }
        let next = format!("after-{name}");
        api.create(&PostParams::default(), &named(&next)).await.unwrap();
        wait_for_object(&reader, &mut stream, &next).await;
    }
}

/// Reads until the reflector's store contains an object.
async fn wait_for_object<S: futures::Stream + Unpin>(reader: &Store<ConfigMap>, stream: &mut S, name: &str) {
    let is_known = || reader.state().iter().any(|map| map.metadata.name.as_deref() == Some(name));
    let read = async {
        while !is_known() {
            stream.next().await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, read).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_need_an_administrator_and_invalid_ones_are_refused() {
    let server = server().await;
    let client = server.client();
    let path = "/portico/test-faults";
    for (method, path) in
        [("GET", path), ("POST", path), ("DELETE", path), ("DELETE", "/portico/test-faults/1")]
    {
        let (code, text) = send_raw(&client, method, path, "{}", Some("alice")).await;
        assert_eq!(code, 403, "{method} {path}: {text}");
    }
    for (body, expected) in [
        ("no json", "the body is no fault: expected"),
        (r#"{"fault": {"slow": {}}}"#, "unknown variant `slow`"),
        (r#"{"fault": {"cutWatch": {}}, "match": {"verbs": ["get"]}}"#, "this fault applies only to watch"),
        (r#"{"fault": {"status": {"code": 200}}}"#, "must be one of 400 BadRequest"),
    ] {
        let (code, text) = send_raw(&client, "POST", path, body, None).await;
        let status: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")));
        assert!(status["message"].as_str().unwrap().contains(expected), "{text}");
    }
    assert_eq!(send_raw(&client, "PUT", path, "{}", None).await.0, 405);
    assert_eq!(send_raw(&client, "GET", "/portico/test-faults/7", "", None).await.0, 404);
    for _ in 0..100 {
        server.fault(Fault::conflict().user("nobody")).await.unwrap();
    }
    let error = server.fault(Fault::conflict()).await.err().unwrap();
    assert!(matches!(&error, Error::Client(kube::Error::Api(status)) if status.code == 422), "{error}");
    server.clear_faults().await.unwrap();
    assert_eq!(send_raw(&client, "GET", path, "", None).await.1, r#"{"faults":[]}"#);
    // Selection by user agent and user.
    let agents = server.fault(Fault::unavailable().user_agent("other/")).await.unwrap();
    let alice = server.fault(Fault::unavailable().user("alice")).await.unwrap();
    config_maps(&server).delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    assert_eq!((agents.hits().await.unwrap(), alice.hits().await.unwrap()), (0, 0));
}

#[test]
fn test_faults_need_an_ephemeral_server() {
    let refused = |arguments: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(binary()).args(arguments).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let text = refused(&["--test-faults"]);
    assert!(text.contains("--test-faults: requires --ephemeral"), "{text}");
    let text = refused(&["run", "--ephemeral", "--exit-with-stdin", "--", "true"]);
    assert!(text.contains("--exit-with-stdin: cannot be used with a command"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_the_flag_has_no_faults() {
    let portico = portico_tests::Portico::start().await;
    assert_eq!(portico.admin().get("/portico/test-faults").await.status.as_u16(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_ends_with_its_parent_and_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    // The shell holds the other end of the server's standard input, and is killed like a test runner.
    let script = "mkfifo input; exec 9<>input; \"$1\" run --ephemeral --exit-with-stdin --ready-format json <input >ready 9<&- & \
        exec 8>input 9<&-; wait";
    let mut starter = Command::new("sh")
        .args(["-c", script, "sh", &binary().to_string_lossy()])
        .current_dir(folder.path())
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let ready = || std::fs::read_to_string(folder.path().join("ready")).unwrap_or_default();
    wait_until("the server is ready", async || ready().ends_with('\n')).await;
    let ready_line: Value = serde_json::from_str(&ready()).unwrap();
    assert!(ready_line["url"].as_str().unwrap().starts_with("https://127.0.0.1:"), "{ready_line}");
    let kubeconfig = std::path::PathBuf::from(ready_line["kubeconfig"].as_str().unwrap());
    assert!(kubeconfig.exists());
    starter.kill().unwrap();
    starter.wait().unwrap();
    wait_until("the server has deleted its data folder", async || !kubeconfig.parent().unwrap().exists())
        .await;
}
