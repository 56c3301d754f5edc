//! Policies of backends by annotation: retries, weights, limits, ejection and return.

use std::process::Command;
use std::time::{Duration, Instant};

use portico_tests::backend::{Backend, Behavior};
use portico_tests::objects::API_SERVICES;
use portico_tests::tools::output;
use portico_tests::{Portico, binary, wait_until};
use serde_json::{Value, json};

const GROUP: &str = "policies.example.com";
const PATH: &str = "/apis/policies.example.com/v1/flunders";

/// Returns an APIService with both backends, and these annotations.
fn service(backends: &[&Backend], annotations: &[(&str, &str)]) -> Value {
    let urls: Vec<String> = backends.iter().map(|backend| backend.url()).collect();
    let mut object = backends[0].api_service();
    let object_annotations = &mut object["metadata"]["annotations"];
    object_annotations["portico.dev/backend-urls"] = json!(urls.join(","));
    for (key, value) in annotations {
        object_annotations[format!("portico.dev/backend-{key}")] = json!(value);
    }
    let spec = object["spec"].as_object_mut().unwrap();
    spec.remove("caBundle");
    spec.insert("insecureSkipTLSVerify".to_owned(), json!(true));
    object
}

/// Starts a server that proxies to two backends with this policy.
async fn proxied(annotations: &[(&str, &str)]) -> (Portico, Backend, Backend) {
    let portico = Portico::start().await;
    let (one, two) = (Backend::start(GROUP).await, Backend::start(GROUP).await);
    let created = portico.admin().post(API_SERVICES, &service(&[&one, &two], annotations)).await;
    assert_eq!(created.status, 201, "{}", created.text());
    wait_until("the API is served", async || portico.admin().get(PATH).await.status == 200).await;
    (portico, one, two)
}

async fn codes(portico: &Portico, requests: usize) -> Vec<u16> {
    let mut codes = Vec::new();
    for _ in 0..requests {
        codes.push(portico.admin().get(PATH).await.status.as_u16());
    }
    codes
}

/// Returns the value of a metric of the facade.
async fn metric(portico: &Portico, line: &str) -> f64 {
    let text = portico.admin().get("/metrics").await.text();
    let value = text.lines().find_map(|found| found.strip_prefix(line)).map(str::trim);
    value.map_or(0.0, |value| value.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_safe_requests_are_retried() {
    let (portico, one, two) = proxied(&[("retries", "2")]).await;
    for mood in [Behavior::Drop, Behavior::Code(503)] {
        one.set_behavior(mood);
        assert_eq!(codes(&portico, 6).await, [200; 6], "{mood:?}");
        one.set_behavior(Behavior::Normal);
    }
    assert!(metric(&portico, "portico_proxy_repeated_requests_total{reason=\"status\"}").await >= 1.0);
    // One of the backends responds well, but not to every write.
    one.set_behavior(Behavior::Code(503));
    let (before_one, before_two) = (one.requests().len(), two.requests().len());
    let mut written = Vec::new();
    for _ in 0..4 {
        written.push(portico.admin().post(PATH, &json!({"kind": "Flunder"})).await.status.as_u16());
    }
    assert_eq!(written.iter().filter(|code| **code == 503).count(), 2, "{written:?}");
    assert_eq!(
        one.requests().len() + two.requests().len() - before_one - before_two,
        4,
        "each was sent once"
    );
    // None does: after three attempts, the client gets the backend's response.
    two.set_behavior(Behavior::Code(503));
    let before = one.requests().len() + two.requests().len();
    assert_eq!(codes(&portico, 1).await, [503]);
    assert_eq!(one.requests().len() + two.requests().len() - before, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_policy_there_are_no_retries() {
    let (portico, one, _two) = proxied(&[]).await;
    one.set_behavior(Behavior::Code(503));
    let codes = codes(&portico, 6).await;
    assert_eq!(codes.iter().filter(|code| **code == 503).count(), 3, "{codes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_attempt_times_out() {
    let (portico, one, two) = proxied(&[("retries", "1"), ("per-try-timeout", "300ms")]).await;
    one.set_behavior(Behavior::Slow(Duration::from_secs(20)));
    let begin = Instant::now();
    assert_eq!(codes(&portico, 4).await, [200; 4]);
    assert!(begin.elapsed() < Duration::from_secs(10));
    two.set_behavior(Behavior::Slow(Duration::from_secs(20)));
    let answer = portico.admin().get(PATH).await;
    let message = answer.status_body(503, "ServiceUnavailable")["message"].to_string();
    assert!(message.contains("within 300ms (backend-per-try-timeout)"), "{message}");
    let (http, flunder) = (portico.admin(), json!({"kind": "Flunder"}));
    let write = http.post(PATH, &flunder);
    assert!(tokio::time::timeout(Duration::from_secs(2), write).await.is_err(), "a write is waited for");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_read_is_hedged() {
    let (portico, one, two) = proxied(&[("hedge-after", "200ms")]).await;
    one.set_behavior(Behavior::Slow(Duration::from_secs(20)));
    let (begin, before) = (Instant::now(), two.requests().len());
    assert_eq!(codes(&portico, 4).await, [200; 4]);
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!(two.requests().len() - before, 4);
    assert_eq!(metric(&portico, "portico_proxy_repeated_requests_total{reason=\"hedged\"}").await, 2.0);
    // The first response may be a failure: then the other one is awaited.
    one.set_behavior(Behavior::Slow(Duration::from_secs(1)));
    two.set_behavior(Behavior::Code(503));
    let codes = codes(&portico, 2).await;
    assert!(codes.contains(&200), "{codes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_spread_by_weights() {
    let (portico, one, two) = proxied(&[("weights", "3,1")]).await;
    let (before_one, before_two) = (one.requests().len(), two.requests().len());
    assert_eq!(codes(&portico, 20).await, [200; 20]);
    assert_eq!((one.requests().len() - before_one, two.requests().len() - before_two), (15, 5));
    for (backend, weight) in [(&one, 3.0), (&two, 1.0)] {
        let labels = format!("{{service=\"default/backend:443\",endpoint=\"{}\"}}", backend.address);
        assert_eq!(metric(&portico, &format!("portico_proxy_backend_weight{labels}")).await, weight);
        assert!(metric(&portico, &format!("portico_proxy_backend_connections{labels}")).await >= 1.0);
    }
    let waits = "portico_proxy_backend_connection_waits_total{service=\"default/backend:443\"}";
    assert!(metric(&portico, waits).await >= 2.0);
    assert_eq!(metric(&portico, "portico_proxy_backend_series_left_out").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_connections_than_allowed_are_refused_at_once() {
    let (portico, one, two) = proxied(&[("max-connections", "2")]).await;
    one.set_behavior(Behavior::Paused);
    two.set_behavior(Behavior::Paused);
    let http = portico.admin();
    let requests = async { tokio::join!(http.get(PATH), http.get(PATH)) };
    let before = one.requests().len() + two.requests().len();
    let refused = async {
        wait_until("both requests have reached the backends", async || {
            one.requests().len() + two.requests().len() == before + 2
        })
        .await;
        wait_until("the third request is refused", async || {
            let http = portico.admin();
            let answer = tokio::time::timeout(Duration::from_millis(500), http.get(PATH)).await;
            answer.is_ok_and(|answer| answer.status == 503 && answer.text().contains('2'))
        })
        .await;
        one.set_behavior(Behavior::Normal);
        two.set_behavior(Behavior::Normal);
    };
    let ((first, second), ()) = tokio::join!(requests, refused);
    let metric_name = |name: &str| format!("portico_proxy_backend_{name}{{service=\"default/backend:443\"}}");
    assert_eq!(metric(&portico, &metric_name("max_requests")).await, 2.0);
    assert!(metric(&portico, &metric_name("refused_requests_total")).await >= 1.0);
    assert_eq!((first.status.as_u16(), second.status.as_u16()), (200, 200));
    assert_eq!(codes(&portico, 2).await, [200; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_of_a_backend_continue_under_another_policy() {
    let (portico, one, two) = proxied(&[("max-connections", "1")]).await;
    let counters = async || {
        let metric_name =
            |name: &str| format!("portico_proxy_backend_{name}_total{{service=\"default/backend:443\"}}");
        (
            metric(&portico, &metric_name("connection_waits")).await,
            metric(&portico, &metric_name("refused_requests")).await,
        )
    };
    one.set_behavior(Behavior::Paused);
    two.set_behavior(Behavior::Paused);
    let http = portico.admin();
    let before = one.requests().len() + two.requests().len();
    let request = http.get(PATH);
    let refused = async {
        wait_until("the first request has reached a backend", async || {
            one.requests().len() + two.requests().len() == before + 1
        })
        .await;
        assert_eq!(portico.admin().get(PATH).await.status, 503);
        one.set_behavior(Behavior::Normal);
        two.set_behavior(Behavior::Normal);
    };
    let (response, ()) = tokio::join!(request, refused);
    assert_eq!(response.status, 200);
    let first = counters().await;
    assert!(first.0 >= 1.0 && first.1 >= 1.0, "{first:?}");
    let least = std::sync::Mutex::new(first);
    for connections in ["2", "3"] {
        let object = service(&[&one, &two], &[("max-connections", connections)]);
        let changed = portico.admin().merge(&format!("{API_SERVICES}/{}", one.name()), &object).await;
        assert_eq!(changed.status, 200, "{}", changed.text());
        let limit_metric = "portico_proxy_backend_max_requests{service=\"default/backend:443\"}";
        let previous_limit = metric(&portico, limit_metric).await;
        wait_until("the changed policy is in effect", async || {
            let now = counters().await;
            let before = std::mem::replace(&mut *least.lock().unwrap(), now);
            assert!(now.0 >= before.0 && now.1 >= before.1, "{now:?} is less than {before:?}");
            codes(&portico, 1).await == [200] && metric(&portico, limit_metric).await > previous_limit
        })
        .await;
    }
    let now = counters().await;
    assert!(now.0 > 1.0 && now.1 >= 1.0, "{now:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_address_is_ejected_and_returns() {
    let (portico, one, _two) = proxied(&[("ejection-failures", "2"), ("ejection-time", "500ms")]).await;
    one.set_behavior(Behavior::Code(503));
    wait_until("the failing address is ejected", async || codes(&portico, 6).await == [200; 6]).await;
    assert!(metric(&portico, "portico_proxy_ejections_total").await >= 1.0);
    one.set_behavior(Behavior::Normal);
    let before = one.requests().len();
    wait_until("the address receives requests again", async || {
        codes(&portico, 6).await == [200; 6] && one.requests().len() > before + 3
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_policies_are_refused_and_valid_ones_explained() {
    let (portico, one, two) = proxied(&[("retries", "2"), ("weights", "3,1")]).await;
    let mut command = Command::new(binary());
    command.args(["explain", &one.name()]).env("KUBECONFIG", portico.data().join("admin.kubeconfig"));
    let text = String::from_utf8(output(&mut command).stdout).unwrap();
    assert!(text.contains("policy") && text.contains("retries 2, weights 3,1"), "{text}");
    for (key, value, why) in [
        ("retries", "9", "must be a number from 0 to 5"),
        ("per-try-timeout", "never", "must be a duration such as 1.5s"),
        ("weights", "1", "must list 2 numbers"),
        ("ejection-time", "5s", "needs portico.dev/backend-ejection-failures"),
    ] {
        let mut object = service(&[&one, &two], &[(key, value)]);
        object["metadata"]["name"] = json!("v2.policies.example.com");
        object["spec"]["version"] = json!("v2");
        let refused = portico.admin().post(API_SERVICES, &object).await;
        let message = refused.status_body(422, "Invalid")["message"].to_string();
        assert!(
            message.contains(&format!("metadata.annotations[portico.dev/backend-{key}]"))
                && message.contains(why),
            "{message}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistyped_annotation_gets_a_warning_with_the_correct_one() {
    let portico = Portico::start().await;
    let backend = Backend::start("mistyped.example.com").await;
    let mut object = backend.api_service();
    object["metadata"]["annotations"]["portico.dev/backend-retrys"] = json!("2");
    object["metadata"]["annotations"]["example.com/backend-retrys"] = json!("2");
    let created = portico.admin().post(API_SERVICES, &object).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let expected = "299 - \"metadata.annotations[portico.dev/backend-retrys]: unknown annotation, which has no effect; \
        known and nearest to it: \\\"portico.dev/backend-retries\\\"\"";
    assert_eq!(created.header("warning"), expected);
    let renamed = json!({"metadata": {"annotations": {"portico.dev/backend-retrys": null, "portico.dev/backend-retries": "2"}}});
    let mended = portico.admin().merge(&format!("{API_SERVICES}/{}", backend.name()), &renamed).await;
    assert_eq!((mended.status.as_u16(), mended.header("warning")), (200, ""));
}
