//! Priority and fairness over HTTP: a flood of one flow does not affect others; rejected requests get 429.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::Request;
use http_body_util::Full;
use portico_kit::tasks::TaskSet;
use portico_proto::apiregistration::ListRequest;
use portico_proto::objects::{Call, DoRequest, Target};
use portico_tests::backend::Behavior;
use portico_tests::http::{FullResponse, Http, JsonLines};
use portico_tests::{Backend, Launch, Portico, eventually, wait_until};
use serde_json::{Value, json};
use tonic_types::StatusExt;

use crate::proxying::register;

const GROUP: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const CONNECTIONS: usize = 64;
const LEVEL: &str = "x-kubernetes-pf-prioritylevel-uid";
const SCHEMA: &str = "x-kubernetes-pf-flowschema-uid";

async fn created(portico: &Portico, resource: &str, body: &Value) -> String {
    let answer = portico.admin().post(&format!("{GROUP}/{resource}"), body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// Creates a level, and a schema that assigns these users to it; returns their uids, once the facade uses them.
async fn limit(portico: &Portico, users: &[&str], limited: Value) -> (String, String) {
    let spec = json!({"type": "Limited", "limited": limited});
    let level = json!({"metadata": {"name": "narrow"}, "spec": spec});
    let level = created(portico, "prioritylevelconfigurations", &level).await;
    let subjects: Vec<Value> = users.iter().map(|u| json!({"kind": "User", "user": {"name": u}})).collect();
    let all = json!(["*"]);
    let rules = json!([{"subjects": subjects,
        "resourceRules": [{"verbs": all, "apiGroups": all, "resources": all, "namespaces": all, "clusterScope": true}],
        "nonResourceRules": [{"verbs": all, "nonResourceURLs": all}]}]);
    let schema = json!({"metadata": {"name": "narrow"}, "spec": {"priorityLevelConfiguration": {"name": "narrow"},
        "matchingPrecedence": 50, "distinguisherMethod": {"type": "ByUser"}, "rules": rules}});
    let schema = created(portico, "flowschemas", &schema).await;
    let user = portico.anonymous().as_user(users[0]);
    eventually("the facade applies the schema", || async {
        let answer = get_with_short_timeout(&user).await;
        if answer.header(SCHEMA) == schema { Ok(()) } else { Err(answer.header(SCHEMA).to_owned()) }
    })
    .await;
    (level, schema)
}

/// Sends a request with a short timeout, which bounds its wait for a seat.
async fn get_with_short_timeout(user: &Http) -> FullResponse {
    user.get("/version?timeout=400ms").await
}

fn assert_rejected(answer: &FullResponse, level: &str, schema: &str) {
    assert_eq!(answer.status, 429, "{}", answer.text());
    assert_eq!(answer.text(), "Too many requests, please try again later.\n");
    let seconds: u64 = answer.header("retry-after").parse().unwrap();
    assert!((1..=32).contains(&seconds), "{seconds}");
    assert_eq!((answer.header(LEVEL), answer.header(SCHEMA)), (level, schema));
}

async fn metrics(portico: &Portico) -> String {
    portico.admin().get("/metrics").await.text()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_one_user_leaves_another_users_requests_served() {
    let backend = Backend::start("flood.example.com").await;
    let portico = Launch::new().args(&["--authorization-mode", "AlwaysAllow"]).start().await;
    register(&portico, &backend).await;
    backend.set_behavior(Behavior::Slow(Duration::from_millis(20)));
    let limited = json!({"nominalConcurrencyShares": 1, "borrowingLimitPercent": 0, "lendablePercent": 0,
        "limitResponse": {"type": "Queue", "queuing": {"queues": 64, "handSize": 2, "queueLengthLimit": 10}}});
    let (level, schema) = limit(&portico, &["alice", "bob"], limited).await;
    let (stop, rejected, tasks) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)), TaskSet::new());
    for _ in 0..CONNECTIONS {
        let (alice, path) = (portico.anonymous().as_user("alice"), backend.path("/flunders"));
        let (stop, rejected) = (stop.clone(), rejected.clone());
        let (level, schema) = (level.clone(), schema.clone());
        tasks.spawn("flood", async move {
            let mut connection = alice.connect().await.unwrap();
            while !stop.load(Ordering::Relaxed) {
                let answer = connection.get(&path).await.unwrap();
                if answer.status != 200 {
                    assert_rejected(&answer, &level, &schema);
                    rejected.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    wait_until("the flood is rejected", || std::future::ready(rejected.load(Ordering::Relaxed) > 100)).await;
    let mut bob = portico.anonymous().as_user("bob").connect().await.unwrap();
    for _ in 0..20 {
        let answer = bob.get(&backend.path("/flunders")).await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!((answer.header(LEVEL), answer.header(SCHEMA)), (level.as_str(), schema.as_str()));
    }
    let table =
        portico.admin().get("/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1").await;
    assert!(table.text().contains("narrow,"), "{}", table.text());
    assert!(table.text().contains("alice,"), "{}", table.text());
    stop.store(true, Ordering::Relaxed);
    wait_until("the flood ends", || std::future::ready(tasks.running().is_empty())).await;
    let text = metrics(&portico).await;
    for line in [
        r#"apiserver_flowcontrol_rejected_requests_total{priority_level="narrow",flow_schema="narrow",reason="queue-full"}"#,
        r#"apiserver_flowcontrol_dispatched_requests_total{priority_level="narrow",flow_schema="narrow"}"#,
        r#"apiserver_flowcontrol_current_executing_requests{priority_level="narrow",flow_schema="narrow"} 0"#,
        r#"apiserver_flowcontrol_nominal_limit_seats{priority_level="narrow"} 3"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_wait_is_limited_and_ends_with_the_client() {
    let portico = Launch::new().args(&["--authorization-mode", "AlwaysAllow"]).start().await;
    let limited = json!({"nominalConcurrencyShares": 0, "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Queue", "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": 1}}});
    let (level, schema) = limit(&portico, &["alice"], limited).await;
    let alice = portico.anonymous().as_user("alice");
    let before = std::time::Instant::now();
    let answer = alice.get("/version?timeout=2s").await;
    assert_rejected(&answer, &level, &schema);
    let waited = before.elapsed();
    assert!(waited >= Duration::from_millis(450), "{waited:?}");
    // One request waits for long; the next one finds the queue full.
    let tasks = TaskSet::new();
    let patient = alice.clone();
    let waiting = tasks.token().child_token();
    let cancelled = waiting.clone();
    tasks.spawn("waits", async move {
        let request = Request::get("/version").body(Full::default()).unwrap();
        drop(cancelled.run_until_cancelled(patient.send(request)).await);
    });
    let levels =
        || async { portico.admin().get("/debug/api_priority_and_fairness/dump_queues").await.text() };
    let pending = || async {
        let text = levels().await;
        let line = text.lines().find(|line| line.starts_with("narrow,")).unwrap_or_default().to_owned();
        line.split(',').nth(2).map(|cell| cell.trim().to_owned()).unwrap_or_default()
    };
    wait_until("one request is queued", || async { pending().await == "1" }).await;
    let answer = alice.get("/version").await;
    assert_rejected(&answer, &level, &schema);
    waiting.cancel();
    wait_until("no request is queued", || async { pending().await == "0" }).await;
    let text = metrics(&portico).await;
    for reason in ["time-out", "queue-full", "cancelled"] {
        let line = format!(
            r#"apiserver_flowcontrol_rejected_requests_total{{priority_level="narrow",flow_schema="narrow",reason="{reason}"}}"#
        );
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_name_schema_and_level_for_authenticated_callers() {
    let portico = Launch::new().args(&["--authorization-mode", "RBAC"]).start().await;
    let uid = async |path: String| {
        portico.admin().get(&path).await.json()["metadata"]["uid"].as_str().unwrap().to_owned()
    };
    let exempt = uid(format!("{GROUP}/prioritylevelconfigurations/exempt")).await;
    let answer = portico.admin().get("/api/v1/namespaces/default").await;
    assert_eq!((answer.status.as_u16(), answer.header(LEVEL)), (200, exempt.as_str()));
    let low = uid(format!("{GROUP}/prioritylevelconfigurations/global-default")).await;
    let schema = uid(format!("{GROUP}/flowschemas/global-default")).await;
    let refused = portico.anonymous().as_user("carol").get("/api/v1/secrets").await;
    assert_eq!(
        (refused.status.as_u16(), refused.header(LEVEL), refused.header(SCHEMA)),
        (403, low.as_str(), schema.as_str())
    );
    let unknown = portico.anonymous().with_token("nobody's").get("/api").await;
    assert_eq!((unknown.status.as_u16(), unknown.header(LEVEL), unknown.header(SCHEMA)), (401, "", ""));
    let table = portico.admin().get("/debug/api_priority_and_fairness/dump_priority_levels").await;
    assert!(
        table.text().starts_with("PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing,"),
        "{}",
        table.text()
    );
    assert!(table.text().contains("\nexempt,"), "{}", table.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_and_debug_pages_need_the_feature() {
    let portico = Launch::new().args(&["--enable-priority-and-fairness=false"]).start().await;
    let answer = portico.admin().get("/version").await;
    assert_eq!((answer.status.as_u16(), answer.header(LEVEL)), (200, ""));
    let table = portico.admin().get("/debug/api_priority_and_fairness/dump_priority_levels").await;
    assert_eq!(table.status, 404);
    assert_eq!(portico.admin().get("/readyz/poststarthook/max-in-flight-filter").await.status, 200);
}

/// Sends a GET of the default namespace over gRPC.
async fn get_over_grpc(portico: &Portico, user: &str) -> Result<u32, tonic::Status> {
    let client = portico.control_as(user);
    let (version, resource) = ("v1".to_owned(), "namespaces".to_owned());
    let target = Target { version, resource, name: "default".into(), ..Target::default() };
    let call = Call { target: Some(target), verb: "get".into(), ..Call::default() };
    client.objects().r#do(DoRequest { call: Some(call) }).await.map(|answer| answer.into_inner().code)
}

#[tokio::test(flavor = "multi_thread")]
async fn native_calls_wait_for_seats_and_get_a_retry_delay() {
    let flags = ["--authorization-mode", "AlwaysAllow", "--request-timeout", "2s"];
    let portico = Launch::new().args(&flags).start().await;
    assert_eq!(get_over_grpc(&portico, "alice").await.unwrap(), 200);
    let limited = json!({"nominalConcurrencyShares": 0, "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Queue", "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": 1}}});
    limit(&portico, &["alice"], limited).await;
    let refused = eventually("alice is refused", || async {
        get_over_grpc(&portico, "alice").await.err().ok_or("served")
    })
    .await;
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused:?}");
    assert_eq!(refused.message(), "Too many requests, please try again later.");
    let retry = refused.get_details_retry_info().and_then(|info| info.retry_delay).unwrap();
    assert!((1..=32).contains(&retry.as_secs()), "{retry:?}");
    assert_eq!(get_over_grpc(&portico, "bob").await.unwrap(), 200);
    // The typed service is limited as well.
    let typed = |user: &str| {
        let client = portico.control_as(user);
        async move { client.api_services().list(ListRequest::default()).await.map(drop) }
    };
    let refused = typed("alice").await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused:?}");
    typed("bob").await.unwrap();
    let text = metrics(&portico).await;
    for line in [
        r#"portico_grpc_flowcontrol_rejected_requests_total{priority_level="narrow",flow_schema="narrow",reason="#,
        r#"portico_grpc_flowcontrol_dispatched_requests_total{priority_level="global-default",flow_schema="global-default"} "#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_upstreams_names_and_watches_release_their_seats() {
    let portico = Portico::start().await;
    let request = Request::get("/api/v1/namespaces?watch=true").body(Full::default()).unwrap();
    let watched = portico.admin().send(request).await.unwrap();
    let mut events = JsonLines::new(watched.into_body());
    assert_eq!(events.next().await.unwrap()["type"], "ADDED");
    let running =
        r#"apiserver_flowcontrol_current_executing_requests{priority_level="exempt",flow_schema="exempt"} 1"#;
    // Only the request for metrics is executing.
    wait_until("the watch releases its seat", || async { metrics(&portico).await.contains(running) }).await;
    let text = metrics(&portico).await;
    for (name, kind) in [
        ("current_executing_requests", "gauge"),
        ("current_executing_seats", "gauge"),
        ("current_limit_seats", "gauge"),
        ("current_r", "gauge"),
        ("demand_seats", "histogram"),
        ("demand_seats_average", "gauge"),
        ("demand_seats_high_watermark", "gauge"),
        ("demand_seats_smoothed", "gauge"),
        ("demand_seats_stdev", "gauge"),
        ("dispatched_requests_total", "counter"),
        ("lower_limit_seats", "gauge"),
        ("nominal_limit_seats", "gauge"),
        ("priority_level_request_utilization", "histogram"),
        ("priority_level_seat_utilization", "histogram"),
        ("read_vs_write_current_requests", "histogram"),
        ("request_execution_seconds", "histogram"),
        ("seat_fair_frac", "gauge"),
        ("target_seats", "gauge"),
        ("upper_limit_seats", "gauge"),
        ("watch_count_samples", "histogram"),
        ("work_estimated_seats", "histogram"),
    ] {
        let line = format!("# TYPE apiserver_flowcontrol_{name} {kind}\n");
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("apiserver_flowcontrol_request_concurrency"), "upstream has dropped these");
    let watched = r#"apiserver_flowcontrol_request_execution_seconds_count{priority_level="exempt",flow_schema="exempt",type="watch"}"#;
    assert!(text.contains(watched), "{text}");
}
