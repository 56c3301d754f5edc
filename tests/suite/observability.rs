//! What the process shows of itself: z-pages, chosen metrics, traces, the log.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use portico_tests::http::Answer;
use portico_tests::{Launch, Portico};

async fn get(portico: &Portico, path: &str, accept: &str) -> Answer {
    let request = Request::get(path).header("accept", accept).header("user-agent", "probe");
    portico.admin().fetch(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn flagz_shows_every_flag_as_text_and_as_an_object() {
    let portico = Launch::new()
        .args(&[
            "--request-timeout",
            "90s",
            "--feature-gates",
            "AllAlpha=false",
            "--authorization-mode",
            "Node,RBAC",
        ])
        .start()
        .await;
    let text = get(&portico, "/flagz", "*/*").await;
    assert_eq!(text.header("content-type"), "text/plain; charset=utf-8");
    let text = text.text();
    assert!(text.starts_with("\napiserver flagz\nWarning: This endpoint is not meant"), "{text}");
    let object = get(&portico, "/flagz", "application/json;v=v1beta1;g=config.k8s.io;as=Flagz").await;
    assert_eq!(object.header("content-type"), "application/json;g=config.k8s.io;v=v1beta1;as=Flagz");
    assert!(object.text().starts_with(
        r#"{"kind":"Flagz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"apiserver"},"flags":{"#
    ));
    let flags = &object.json()["flags"];
    for (name, value) in [
        ("request-timeout", "1m30s"),
        ("feature-gates", "AllAlpha=false"),
        ("authorization-mode", "[Node,RBAC]"),
        ("profiling", "true"),
        ("max-requests-inflight", "400"),
        ("api-audiences", "[]"),
        ("audit-policy-file", ""),
    ] {
        assert_eq!(flags[name], value, "{name}");
    }
    let older = get(&portico, "/flagz", "application/yaml;v=v1alpha1;g=config.k8s.io;as=Flagz").await;
    assert!(older.text().starts_with("apiVersion: config.k8s.io/v1alpha1\nflags:\n"), "{}", older.text());
    assert_eq!(
        older.header("warning"),
        "299 - \"This version of the flagz endpoint is deprecated. Please use a newer version.\""
    );
    let refused = get(&portico, "/flagz", "application/json").await;
    refused.status_body(406, "NotAcceptable");
}

#[tokio::test(flavor = "multi_thread")]
async fn statusz_says_what_runs_since_when_and_is_for_those_who_monitor() {
    let portico = Portico::start().await;
    let object = get(&portico, "/statusz", "application/json;v=v1beta1;g=config.k8s.io;as=Statusz").await;
    let status = object.json();
    assert_eq!((&status["kind"], &status["emulationVersion"]), (&"Statusz".into(), &"1.36".into()));
    assert_eq!(
        status["paths"].as_array().unwrap().iter().filter_map(|path| path.as_str()).collect::<Vec<_>>(),
        ["/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"]
    );
    let listed = portico.admin().get("/").await.text();
    for path in ["/flagz", "/statusz"] {
        assert!(listed.contains(&format!("\"{path}\"")), "{listed}");
        portico.anyone().as_user("alice").get(path).await.status_body(403, "Forbidden");
        let role =
            portico.admin().get("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:monitoring").await;
        assert!(role.text().contains(path), "{}", role.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_their_gates_there_are_no_z_pages() {
    let gates = "ComponentFlagz=false,ComponentStatusz=false";
    let portico = Launch::new().args(&["--feature-gates", gates]).start().await;
    for path in ["/flagz", "/statusz"] {
        assert_eq!(portico.admin().get(path).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_exposed_as_they_are_chosen() {
    let portico = Launch::new()
        .args(&["--disabled-metrics", "portico_store_revision,no_such_metric"])
        .args(&["--allow-metric-labels", "apiserver_request_total,verb=GET"])
        .args(&["--show-hidden-metrics-for-version", "1.35"])
        .start()
        .await;
    portico.admin().post("/api/v1/namespaces", &serde_json::json!({"metadata": {"name": "a"}})).await;
    let text = portico.admin().get("/metrics").await.text();
    assert!(!text.contains("portico_store_revision"), "{text}");
    assert!(text.contains("\ndisabled_metrics_total 2\n"), "{text}");
    assert!(text.contains("\nhidden_metrics_total 2\n"), "{text}");
    for hidden in
        ["apiserver_request_slo_duration_seconds_count{", "apiserver_storage_db_total_size_in_bytes "]
    {
        assert!(text.contains(&format!("\n{hidden}")), "{hidden}");
    }
    let totals: Vec<_> = text.lines().filter(|line| line.starts_with("apiserver_request_total{")).collect();
    assert!(totals.iter().any(|line| line.contains("verb=\"unexpected\"")), "{totals:?}");
    assert!(
        totals.iter().all(|line| line.contains("verb=\"GET\"") || line.contains("\"unexpected\"")),
        "{totals:?}"
    );
    let counted =
        text.lines().find(|l| l.starts_with("cardinality_enforcement_unexpected_categorizations_total "));
    assert!(counted.is_some_and(|line| !line.ends_with(" 0")), "{counted:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn choices_of_metrics_that_cannot_be_are_refused() {
    for (arguments, reason) in [
        (["--disabled-metrics", "a-b"], "must be fully qualified metric names"),
        (["--allow-metric-labels", "metric=a"], "must have keys with format `metricName,labelName`"),
        (["--allow-metric-labels", "metric,label"], "must be formatted as key=value"),
        (["--allow-metric-labels-manifest", "/no/such/file"], "failed to read allow list manifest"),
        (["--show-hidden-metrics-for-version", "1.34"], "must be omitted or have the value '1.35'"),
    ] {
        let (code, _, errors) = Launch::new().args(&arguments).run().await;
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains(reason), "{arguments:?}: {errors}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_debug_socket_asks_nobody_who_they_are_and_is_the_owners() {
    use std::os::unix::fs::PermissionsExt;
    let (launch, folder) = Launch::new().prepared();
    let socket = folder.join("debug.sock");
    // What an earlier process left behind.
    std::fs::write(&socket, "").unwrap();
    let mut portico = launch.args(&["--debug-socket-path", socket.to_str().unwrap()]).start().await;
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let set = over_socket(
        &socket,
        "PUT /debug/flags/v HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\n4",
    )
    .await;
    assert!(set.contains("successfully set klog.logging.verbosity to 4"), "{set}");
    let index =
        over_socket(&socket, "GET /debug/flags HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(index.contains("<title>/debug/flags/</title>"), "{index}");
    let command =
        over_socket(&socket, "GET /debug/pprof/cmdline HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .await;
    assert!(command.contains("--debug-socket-path"), "{command}");
    let other = over_socket(&socket, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(other.starts_with("HTTP/1.1 404"), "{other}");
    assert!(portico.stop().await.success());
    assert!(!socket.exists());
}

async fn over_socket(path: &std::path::Path, request: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::UnixStream::connect(path).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
