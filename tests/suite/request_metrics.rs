//! Request metrics with upstream's names and labels, and warnings and metrics of deprecated APIs.

use std::time::Duration;

use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Behavior, Launch, Portico, wait_until};
use serde_json::{Value, json};

use crate::audit::{METADATA, events, with_audit_log};
use crate::webhooks::setup::{Setup, VALIDATING};

async fn metrics(portico: &Portico) -> String {
    portico.admin().get("/metrics").await.text()
}

/// Returns the value of a series of ConfigMaps; `None` if there is none yet.
fn value(metrics: &str, series: &str) -> Option<f64> {
    metrics.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

/// Returns the series of this metric for a verb on ConfigMaps.
fn series(name: &str, verb: &str, dry_run: Option<&str>) -> String {
    let dry_run = dry_run.map(|dry_run| format!("dry_run=\"{dry_run}\",")).unwrap_or_default();
    format!(
        "{name}{{verb=\"{verb}\",{dry_run}group=\"\",version=\"v1\",resource=\"configmaps\",subresource=\"\",\
         scope=\"resource\",component=\"apiserver\"}}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deprecated_api_warns_and_is_counted_with_its_removal() {
    let (launch, log) = with_audit_log(Launch::new(), METADATA);
    let beta = "networking.k8s.io/v1beta1=true,storage.k8s.io/v1beta1=true";
    let portico = launch.args(&["--runtime-config", beta]).start().await;
    let expected = [
        (
            "/apis/networking.k8s.io/v1beta1/servicecidrs",
            "networking.k8s.io/v1beta1 ServiceCIDR is deprecated in v1.34+, unavailable in v1.37+",
            json!("1.37"),
        ),
        (
            "/apis/storage.k8s.io/v1beta1/volumeattributesclasses",
            "storage.k8s.io/v1beta1 VolumeAttributesClass is deprecated in v1.34+, unavailable in v1.37+; \
             use storage.k8s.io/v1 VolumeAttributesClass",
            json!("1.37"),
        ),
        ("/api/v1/componentstatuses", "v1 ComponentStatus is deprecated in v1.19+", Value::Null),
    ];
    for (path, warning, removed) in expected {
        let answer = portico.admin().get(path).await;
        assert_eq!(answer.header("warning"), format!("299 - \"{warning}\""));
        let event = events(&log, answer.header("audit-id"), 2).await.remove(1);
        assert_eq!(event["annotations"]["k8s.io/deprecated"], "true", "{event}");
        assert_eq!(event["annotations"]["k8s.io/removed-release"], removed, "{event}");
    }
    assert_eq!(portico.admin().get("/apis/networking.k8s.io/v1/servicecidrs").await.header("warning"), "");
    let text = metrics(&portico).await;
    let series_lines: Vec<&str> =
        text.lines().filter(|line| line.starts_with("apiserver_requested_deprecated_apis{")).collect();
    assert_eq!(series_lines.len(), 3, "{series_lines:?}");
    let name = "apiserver_requested_deprecated_apis";
    let series = format!(
        "{name}{{group=\"networking.k8s.io\",version=\"v1beta1\",resource=\"servicecidrs\",subresource=\"\",\
         removed_release=\"1.37\"}}"
    );
    assert_eq!(value(&text, &series), Some(1.0), "{series_lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn slo_metrics_exclude_webhooks_and_dry_runs() {
    let slow = Duration::from_millis(600);
    let setup = Setup::start().await;
    setup
        .configure(VALIDATING, "v", vec![setup.webhook("v1", "allow", &json!({"timeoutSeconds": 20}))])
        .await;
    let portico = &setup.portico;
    let before = metrics(portico).await;
    setup.hooks.set_behavior(Behavior::Slow(slow));
    assert_eq!(setup.create("slow").await.status, 201);
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    assert_eq!(portico.admin().post(&path, &json!({"metadata": {"name": "dry"}})).await.status, 201);
    assert_eq!(portico.admin().get(&format!("{CONFIG_MAPS}/slow")).await.status, 200);
    let after = metrics(portico).await;
    let grown = |series: &str| value(&after, series).unwrap_or(0.0) - value(&before, series).unwrap_or(0.0);
    let sum = |name: &str, dry_run| grown(&series(&format!("{name}_sum"), "POST", dry_run));
    let count = |name: &str, verb, dry_run| grown(&series(&format!("{name}_count"), verb, dry_run));
    let (duration, objective) =
        ("apiserver_request_duration_seconds", "apiserver_request_sli_duration_seconds");
    assert!(sum(duration, Some("")) >= slow.as_secs_f64(), "{after}");
    assert_eq!(
        (count(duration, "POST", Some("")), count(duration, "POST", Some("All"))),
        (1.0, 1.0),
        "{after}"
    );
    assert!(sum(objective, None) < slow.as_secs_f64(), "{after}");
    assert_eq!(count(objective, "POST", None), 1.0, "{after}");
    let sizes = |verb| count("apiserver_response_sizes", verb, None);
    assert_eq!((sizes("POST"), sizes("GET")), (0.0, 1.0), "{after}");
    let bodies =
        "apiserver_request_body_size_bytes_count{resource=\"configmaps\",verb=\"create\",group=\"\"}";
    assert_eq!(grown(bodies), 2.0, "{after}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sent_watch_events_are_counted() {
    let portico = Portico::start().await;
    let watched = format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name=none");
    assert_eq!(portico.admin().get(&watched).await.status, 200);
    let labels = "{group=\"\",version=\"v1\",resource=\"configmaps\"}";
    let events = format!("apiserver_watch_events_total{labels}");
    assert_eq!(value(&metrics(&portico).await, &events), Some(0.0));
    assert_eq!(portico.admin().post(CONFIG_MAPS, &json!({"metadata": {"name": "a"}})).await.status, 201);
    let watched = format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name=a");
    assert_eq!(portico.admin().get(&watched).await.status, 200);
    wait_until("the event is counted", || async {
        let text = metrics(&portico).await;
        let sizes = format!("apiserver_watch_events_sizes_count{labels}");
        value(&text, &events) == Some(1.0) && value(&text, &sizes) == Some(1.0)
    })
    .await;
}
