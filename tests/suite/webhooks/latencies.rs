//! Audit events of slow requests contain latencies, those of fast ones do not.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use portico_tests::{Behavior, Launch};
use serde_json::{Value, json};

use super::setup::{MUTATING, Setup, VALIDATING};
use crate::audit::{METADATA, events, with_audit_log};

/// Delay of a slow webhook.
const SLOW: Duration = Duration::from_millis(600);
/// Duration above which requests have latencies in their events.
const THRESHOLD: f64 = 0.5;

/// Returns the last event of a create.
async fn created(setup: &Setup, log: &Path, name: &str) -> Value {
    let answer = setup.create(name).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    events(log, answer.header("audit-id"), 2).await.remove(1)
}

/// Returns the latencies in an event, in seconds.
fn latencies(event: &Value) -> Vec<(String, f64)> {
    let annotations = event["annotations"].as_object().into_iter().flatten();
    let named =
        annotations.filter_map(|(key, value)| Some((key.strip_prefix("apiserver.latency.k8s.io/")?, value)));
    named.map(|(key, value)| (key.to_owned(), seconds(value.as_str().unwrap()))).collect()
}

/// Parses Go's text of a duration below a minute.
fn seconds(text: &str) -> f64 {
    let units = [("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let (number, unit) =
        units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit))).unwrap();
    number.parse::<f64>().unwrap() * unit
}

/// Returns the total time of the request.
fn total(event: &Value) -> f64 {
    let at = |field: &str| event[field].as_str().unwrap().parse::<Timestamp>().unwrap();
    at("stageTimestamp").duration_since(at("requestReceivedTimestamp")).as_secs_f64()
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_creates_have_webhook_latencies_in_their_event() {
    let (launch, log) = with_audit_log(Launch::new(), METADATA);
    let setup = Setup::launch(launch).await;
    let webhook = |name| setup.webhook(name, "allow", &json!({"timeoutSeconds": 20}));
    setup.configure(MUTATING, "m", vec![webhook("m1"), webhook("m2")]).await;
    setup.configure(VALIDATING, "v", vec![webhook("v1"), webhook("v2")]).await;

    setup.hooks.set_behavior(Behavior::Slow(SLOW));
    let event = created(&setup, &log, "slow").await;
    let found = latencies(&event);
    let took = |key: &str| found.iter().find(|(name, _)| name == key).map_or(0.0, |(_, took)| *took);
    let slow = SLOW.as_secs_f64();
    assert!(took("mutating-webhook") >= 2.0 * slow, "one after another: {event}");
    assert!(took("validating-webhook") >= slow, "{event}");
    assert!(took("total") >= took("mutating-webhook") + took("validating-webhook"), "{event}");
    assert!((took("total") - total(&event)).abs() < 0.001, "{event}");
    for part in ["authentication", "authorization", "etcd"] {
        assert!(took(part) > 0.0 && took(part) < took("total") - 3.0 * slow, "{part}: {event}");
    }
    assert_eq!(took("apf-queue-wait"), 0.0, "a seat was free at once: {event}");

    setup.hooks.set_behavior(Behavior::Normal);
    let mut quick = 0;
    for n in 0..20 {
        let event = created(&setup, &log, &format!("quick-{n}")).await;
        let is_slow = total(&event) > THRESHOLD;
        assert_eq!(latencies(&event).is_empty(), !is_slow, "{event}");
        quick += usize::from(!is_slow);
    }
    assert!(quick > 0, "at least one request is fast");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_refusals_have_latencies_in_their_event() {
    let (launch, log) = with_audit_log(Launch::new(), METADATA);
    let setup = Setup::launch(launch).await;
    setup.configure_one(VALIDATING, "deny", json!({"timeoutSeconds": 20})).await;
    setup.hooks.set_behavior(Behavior::Slow(SLOW));
    let answer = setup.create("refused").await;
    assert_eq!(answer.status, 418, "{}", answer.text());
    let event = events(&log, answer.header("audit-id"), 2).await.remove(1);
    let names: Vec<String> = latencies(&event).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["authentication", "authorization", "total", "validating-webhook"], "{event}");
}
