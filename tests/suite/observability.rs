//! Observability: z-pages, metrics, traces, the log.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use portico_tests::http::FullResponse;
use portico_tests::{Behavior, Launch, Portico, eventually};
use regex::Regex;
use serde_json::Value;

use crate::webhooks::setup::{Setup, VALIDATING};

/// Reference of all metric families.
const METRICS: &str = include_str!("../../docs/reference/metrics.md");

async fn get(portico: &Portico, path: &str, accept: &str) -> FullResponse {
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
async fn statusz_reports_version_and_start_to_monitoring_users() {
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
        portico.anonymous().as_user("alice").get(path).await.status_body(403, "Forbidden");
        let role =
            portico.admin().get("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:monitoring").await;
        assert!(role.text().contains(path), "{}", role.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn z_pages_need_their_feature_gates() {
    let gates = "ComponentFlagz=false,ComponentStatusz=false";
    let portico = Launch::new().args(&["--feature-gates", gates]).start().await;
    for path in ["/flagz", "/statusz"] {
        assert_eq!(portico.admin().get(path).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_filtered_by_flags() {
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
async fn invalid_metric_flags_are_refused() {
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
async fn the_debug_socket_needs_no_authentication_and_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let (launch, folder) = Launch::new().prepare_folder();
    let socket = folder.join("debug.sock");
    // Left by an earlier process.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
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

#[tokio::test(flavor = "multi_thread")]
async fn the_debug_socket_does_not_replace_a_file_that_is_not_a_socket() {
    let (launch, folder) = Launch::new().prepare_folder();
    let file = folder.join("notes");
    std::fs::write(&file, "mine").unwrap();
    let mut portico = launch.args(&["--debug-socket-path", file.to_str().unwrap()]).start().await;
    assert!(portico.log().contains("the file exists and is not a socket"), "{}", portico.log());
    assert!(portico.stop().await.success());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_debug_socket_survives_the_end_of_the_previous_server() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("debug.sock");
    let launch = || Launch::new().args(&["--debug-socket-path", socket.to_str().unwrap()]);
    let mut first = launch().start().await;
    let mut second = launch().start().await;
    assert!(first.stop().await.success());
    let index =
        over_socket(&socket, "GET /debug/flags HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(index.contains("<title>/debug/flags/</title>"), "{index}");
    assert!(second.stop().await.success());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "each server removes its own file");
}

async fn over_socket(path: &std::path::Path, request: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::UnixStream::connect(path).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Returns the metrics that an expression of PromQL uses.
fn used_metrics(expression: &str) -> Vec<String> {
    let labels = Regex::new(r#"\{[^}]*\}|"[^"]*"|\$\w+|\bby \([^)]*\)"#).unwrap();
    let rest = labels.replace_all(expression, " ");
    let names = Regex::new("[a-z][a-z0-9]*(_[a-z0-9]+)+").unwrap();
    let functions = ["histogram_quantile", "label_values"];
    names
        .find_iter(&rest)
        .map(|name| name.as_str().to_owned())
        .filter(|name| !functions.contains(&&**name))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn dashboard_and_alerts_use_existing_metrics() {
    let dashboard: Value = serde_json::from_str(include_str!("../../docs/grafana/portico.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let mut expressions: Vec<String> =
        panels.map(|panel| panel["targets"][0]["expr"].as_str().unwrap().to_owned()).collect();
    expressions.push(dashboard["templating"]["list"][1]["query"].as_str().unwrap().to_owned());
    let rules = include_str!("../../docs/prometheus/alerts.yaml");
    let alerts = Regex::new(r"(?s)expr: (.*?)\n    for:").unwrap();
    let alerts: Vec<String> = alerts.captures_iter(rules).map(|found| found[1].to_owned()).collect();
    assert_eq!(alerts.len(), rules.matches("- alert:").count());
    expressions.extend(alerts);

    let portico = Portico::start().await;
    let served = portico.admin().get("/metrics").await.text();
    for expression in expressions {
        let names = used_metrics(&expression);
        assert!(!names.is_empty(), "{expression}");
        for name in names {
            let series = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let is_there = [Some(&*name), series].into_iter().flatten().any(|name| {
                served.contains(&format!("# TYPE {name} ")) || METRICS.contains(&format!("\n- `{name}` ("))
            });
            assert!(is_there, "{name} in {expression}");
        }
    }
}

/// Returns type and labels of a metric family by its name, from its line in the reference.
fn documented(name: &str) -> Option<(&'static str, Vec<&'static str>)> {
    let start = format!("\n- `{}` (", name.replacen("portico_grpc_flowcontrol", "apiserver_flowcontrol", 1));
    let (_, line) = METRICS.split_once(&start)?;
    let (properties, _) = line.split_once("):")?;
    let (kind, labels) = properties.split_once("; labels ").unwrap_or((properties, ""));
    let labels = labels.split(", ").map(|label| label.trim_matches('`')).filter(|label| !label.is_empty());
    Some((kind.split(',').next()?, labels.collect()))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_that_is_served_is_in_the_reference() {
    let mut setup = Setup::launch(Launch::new().args(&["--show-hidden-metrics-for-version", "1.35"])).await;
    setup.configure_one(VALIDATING, "allow", serde_json::json!({})).await;
    assert_eq!(setup.create("m").await.status, 201);
    let admin = setup.portico.admin();
    admin.get("/api/v1/pods?limit=1").await;
    let text = admin.get("/metrics").await.text() + &admin.get("/metrics/slis").await.text();
    let label = Regex::new("([a-z_]+)=").unwrap();
    let quoted = Regex::new(r#""(\\.|[^"\\])*""#).unwrap();
    let (mut family, mut families) = (None, 0);
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# TYPE ") {
            let (name, kind) = described.split_once(' ').unwrap();
            let found =
                documented(name).unwrap_or_else(|| panic!("{name} is not in docs/reference/metrics.md"));
            assert_eq!(found.0, kind, "{name}");
            (family, families) = (Some(found.1), families + 1);
        } else if !line.starts_with('#') {
            let unquoted = quoted.replace_all(line, "");
            let labels = label.captures_iter(&unquoted).map(|found| found[1].to_owned());
            let mut labels: Vec<String> =
                labels.filter(|label| label != "le" && label != "quantile").collect();
            labels.sort();
            let expected: &[&str] = family.as_deref().unwrap_or_default();
            assert_eq!(labels, expected, "{line}");
        }
    }
    assert!(families > 60, "{families} families");
    assert!(setup.portico.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_request_is_logged_with_its_trace() {
    let mut setup = Setup::launch(Launch::new()).await;
    setup.configure_one(VALIDATING, "allow", serde_json::json!({})).await;
    setup.hooks.set_behavior(Behavior::Slow(Duration::from_millis(700)));
    assert_eq!(setup.create("m").await.status, 201);
    let log = eventually("the trace is in the log", || async {
        let log = setup.portico.log();
        if log.contains("] END") { Ok(log) } else { Err(log.len()) }
    })
    .await;
    let start = log.find("Trace[").unwrap();
    let lines: Vec<&str> = log[start..].lines().take(3).collect();
    let number = lines[0].strip_prefix("Trace[").unwrap().split(']').next().unwrap();
    assert!(lines[0].contains("]: \"Create\" ") && lines[0].contains(",resource:configmaps,"), "{lines:?}");
    assert!(lines[0].contains("(total time: ") && lines[0].ends_with("ms):"), "{lines:?}");
    assert!(lines[1].starts_with(&format!("Trace[{number}]: ---\"Call validating webhook\" 7")), "{lines:?}");
    assert!(
        lines[2].starts_with(&format!("Trace[{number}]: [")) && lines[2].ends_with("s] END"),
        "{lines:?}"
    );
    assert!(setup.portico.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_in_json_have_upstreams_fields() {
    let portico = Launch::new().args(&["--logging-format", "json", "--v", "debug"]).start().await;
    portico.admin().get("/version").await;
    let log = eventually("the request is in the log", || async {
        let log = portico.log();
        if log.contains("\"path\":\"/version\"") { Ok(log) } else { Err(log.len()) }
    })
    .await;
    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let request = lines.iter().find(|line| line["path"] == "/version").unwrap();
    assert!(request["ts"].as_f64().is_some_and(|ts| ts > 1.7e12), "{request}");
    let caller = request["caller"].as_str().unwrap();
    assert!(Regex::new(r"^[a-z_]+/[a-z_]+\.rs:\d+$").unwrap().is_match(caller), "{caller}");
    assert_eq!(
        (&request["msg"], &request["v"], &request["code"]),
        (&"request".into(), &4.into(), &200.into())
    );
    assert!(lines.iter().all(|line| line["v"].is_u64() || line["err"].is_string()), "{log}");
}
