//! Policies of backends by annotation: retries, weights, limits, ejection and return.

use std::process::Command;
use std::time::{Duration, Instant};

use portico_tests::backend::{Backend, Mood};
use portico_tests::objects::API_SERVICES;
use portico_tests::tools::output;
use portico_tests::{Portico, binary, until};
use serde_json::{Value, json};

const GROUP: &str = "policies.example.com";
const PATH: &str = "/apis/policies.example.com/v1/flunders";

/// Returns an APIService with both backends, and these annotations.
fn service(backends: &[&Backend], annotations: &[(&str, &str)]) -> Value {
    let urls: Vec<String> = backends.iter().map(|backend| backend.url()).collect();
    let mut object = backends[0].api_service();
    let known = &mut object["metadata"]["annotations"];
    known["portico.dev/backend-urls"] = json!(urls.join(","));
    for (key, value) in annotations {
        known[format!("portico.dev/backend-{key}")] = json!(value);
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
    until("the API is served", async || portico.admin().get(PATH).await.status == 200).await;
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
async fn counted(portico: &Portico, line: &str) -> f64 {
    let text = portico.admin().get("/metrics").await.text();
    let value = text.lines().find_map(|found| found.strip_prefix(line)).map(str::trim);
    value.map_or(0.0, |value| value.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_change_nothing_are_sent_again_and_others_are_not() {
    let (portico, one, two) = proxied(&[("retries", "2")]).await;
    for mood in [Mood::Drop, Mood::Code(503)] {
        one.behave(mood);
        assert_eq!(codes(&portico, 6).await, [200; 6], "{mood:?}");
        one.behave(Mood::Well);
    }
    assert!(counted(&portico, "portico_proxy_repeated_requests_total{reason=\"status\"}").await >= 1.0);
    // One of the backends responds well, but not to every write.
    one.behave(Mood::Code(503));
    let (before_one, before_two) = (one.seen().len(), two.seen().len());
    let mut written = Vec::new();
    for _ in 0..4 {
        written.push(portico.admin().post(PATH, &json!({"kind": "Flunder"})).await.status.as_u16());
    }
    assert_eq!(written.iter().filter(|code| **code == 503).count(), 2, "{written:?}");
    assert_eq!(one.seen().len() + two.seen().len() - before_one - before_two, 4, "each was sent once");
    // None does: after three attempts, the client gets the backend's response.
    two.behave(Mood::Code(503));
    let before = one.seen().len() + two.seen().len();
    assert_eq!(codes(&portico, 1).await, [503]);
    assert_eq!(one.seen().len() + two.seen().len() - before, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_policy_nothing_is_sent_again() {
    let (portico, one, _two) = proxied(&[]).await;
    one.behave(Mood::Code(503));
    let codes = codes(&portico, 6).await;
    assert_eq!(codes.iter().filter(|code| **code == 503).count(), 3, "{codes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_try_that_takes_too_long_is_given_up() {
    let (portico, one, two) = proxied(&[("retries", "1"), ("per-try-timeout", "300ms")]).await;
    one.behave(Mood::Slow(Duration::from_secs(20)));
    let begin = Instant::now();
    assert_eq!(codes(&portico, 4).await, [200; 4]);
    assert!(begin.elapsed() < Duration::from_secs(10));
    two.behave(Mood::Slow(Duration::from_secs(20)));
    let answer = portico.admin().get(PATH).await;
    let message = answer.status_body(503, "ServiceUnavailable")["message"].to_string();
    assert!(message.contains("within 300ms (backend-per-try-timeout)"), "{message}");
    let (http, flunder) = (portico.admin(), json!({"kind": "Flunder"}));
    let write = http.post(PATH, &flunder);
    assert!(tokio::time::timeout(Duration::from_secs(2), write).await.is_err(), "a write is waited for");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_takes_long_is_sent_to_another_address_too() {
    let (portico, one, two) = proxied(&[("hedge-after", "200ms")]).await;
    one.behave(Mood::Slow(Duration::from_secs(20)));
    let (begin, before) = (Instant::now(), two.seen().len());
    assert_eq!(codes(&portico, 4).await, [200; 4]);
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!(two.seen().len() - before, 4);
    assert_eq!(counted(&portico, "portico_proxy_repeated_requests_total{reason=\"hedged\"}").await, 2.0);
    // The first response may be a failure: then the other one is awaited.
    one.behave(Mood::Slow(Duration::from_secs(1)));
    two.behave(Mood::Code(503));
    let codes = codes(&portico, 2).await;
    assert!(codes.contains(&200), "{codes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_spread_by_weights() {
    let (portico, one, two) = proxied(&[("weights", "3,1")]).await;
    let (before_one, before_two) = (one.seen().len(), two.seen().len());
    assert_eq!(codes(&portico, 20).await, [200; 20]);
    assert_eq!((one.seen().len() - before_one, two.seen().len() - before_two), (15, 5));
    for (backend, weight) in [(&one, 3.0), (&two, 1.0)] {
        let labels = format!("{{service=\"default/backend:443\",endpoint=\"{}\"}}", backend.address);
        assert_eq!(counted(&portico, &format!("portico_proxy_backend_weight{labels}")).await, weight);
        assert!(counted(&portico, &format!("portico_proxy_backend_connections{labels}")).await >= 1.0);
    }
    let waits = "portico_proxy_backend_connection_waits_total{service=\"default/backend:443\"}";
    assert!(counted(&portico, waits).await >= 2.0);
    assert_eq!(counted(&portico, "portico_proxy_backend_series_left_out").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_connections_than_allowed_are_refused_at_once() {
    let (portico, one, two) = proxied(&[("max-connections", "2")]).await;
    one.behave(Mood::Held);
    two.behave(Mood::Held);
    let http = portico.admin();
    let held = async { tokio::join!(http.get(PATH), http.get(PATH)) };
    let before = one.seen().len() + two.seen().len();
    let refused = async {
        until("both are held", async || one.seen().len() + two.seen().len() == before + 2).await;
        until("the third is refused", async || {
            let http = portico.admin();
            let answer = tokio::time::timeout(Duration::from_millis(500), http.get(PATH)).await;
            answer.is_ok_and(|answer| answer.status == 503 && answer.text().contains('2'))
        })
        .await;
        one.behave(Mood::Well);
        two.behave(Mood::Well);
    };
    let ((first, second), ()) = tokio::join!(held, refused);
    let of = |name: &str| format!("portico_proxy_backend_{name}{{service=\"default/backend:443\"}}");
    assert_eq!(counted(&portico, &of("max_requests")).await, 2.0);
    assert!(counted(&portico, &of("refused_requests_total")).await >= 1.0);
    assert_eq!((first.status.as_u16(), second.status.as_u16()), (200, 200));
    assert_eq!(codes(&portico, 2).await, [200; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_counted_of_a_backend_goes_on_under_another_policy() {
    let (portico, one, two) = proxied(&[("max-connections", "1")]).await;
    let counters = async || {
        let of =
            |name: &str| format!("portico_proxy_backend_{name}_total{{service=\"default/backend:443\"}}");
        (counted(&portico, &of("connection_waits")).await, counted(&portico, &of("refused_requests")).await)
    };
    one.behave(Mood::Held);
    two.behave(Mood::Held);
    let http = portico.admin();
    let before = one.seen().len() + two.seen().len();
    let held = http.get(PATH);
    let refused = async {
        until("one is held", async || one.seen().len() + two.seen().len() == before + 1).await;
        assert_eq!(portico.admin().get(PATH).await.status, 503);
        one.behave(Mood::Well);
        two.behave(Mood::Well);
    };
    let (held, ()) = tokio::join!(held, refused);
    assert_eq!(held.status, 200);
    let first = counters().await;
    assert!(first.0 >= 1.0 && first.1 >= 1.0, "{first:?}");
    let least = std::sync::Mutex::new(first);
    for connections in ["2", "3"] {
        let object = service(&[&one, &two], &[("max-connections", connections)]);
        let changed = portico.admin().merge(&format!("{API_SERVICES}/{}", one.name()), &object).await;
        assert_eq!(changed.status, 200, "{}", changed.text());
        let most = "portico_proxy_backend_max_requests{service=\"default/backend:443\"}";
        let known = counted(&portico, most).await;
        until("the policy is another one", async || {
            let now = counters().await;
            let before = std::mem::replace(&mut *least.lock().unwrap(), now);
            assert!(now.0 >= before.0 && now.1 >= before.1, "{now:?} is less than {before:?}");
            codes(&portico, 1).await == [200] && counted(&portico, most).await > known
        })
        .await;
    }
    let now = counters().await;
    assert!(now.0 > 1.0 && now.1 >= 1.0, "{now:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_fails_is_left_out_and_comes_back() {
    let (portico, one, _two) = proxied(&[("ejection-failures", "2"), ("ejection-time", "500ms")]).await;
    one.behave(Mood::Code(503));
    until("it is left out", async || codes(&portico, 6).await == [200; 6]).await;
    assert!(counted(&portico, "portico_proxy_ejections_total").await >= 1.0);
    one.behave(Mood::Well);
    let before = one.seen().len();
    until("it comes back", async || codes(&portico, 6).await == [200; 6] && one.seen().len() > before + 3)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_cannot_be_is_refused_and_one_that_can_be_is_explained() {
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
async fn a_mistyped_annotation_is_warned_of_with_the_one_that_is_meant() {
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
