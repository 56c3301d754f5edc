//! Audit: requests that the policy selects are written to a file or a webhook, and no event is lost at shutdown.

use std::path::{Path, PathBuf};

use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Backend, Behavior, Launch, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::proxying::register;

pub(crate) const METADATA: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";

/// Adds this policy and a log to a launch.
pub(crate) fn with_audit_log(launch: Launch, policy: &str) -> (Launch, PathBuf) {
    let (launch, folder) = launch.prepare_folder();
    let (file, log) = (folder.join("policy.yaml"), folder.join("audit.log"));
    std::fs::write(&file, policy).unwrap();
    let args = ["--audit-policy-file", file.to_str().unwrap(), "--audit-log-path", log.to_str().unwrap()];
    (launch.args(&args), log)
}

pub(crate) fn lines(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the events of a request, once there are this many.
pub(crate) async fn events(log: &Path, audit_id: &str, count: usize) -> Vec<Value> {
    eventually(&format!("{count} events of {audit_id}"), || async {
        let found: Vec<Value> = lines(log).into_iter().filter(|event| event["auditID"] == audit_id).collect();
        if found.len() >= count { Ok(found) } else { Err(found) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn events_precede_responses_and_survive_a_drain() {
    let (launch, log) = with_audit_log(Launch::new(), METADATA);
    let mut portico = launch.start().await;
    let admin = portico.admin();
    for n in 0..20 {
        let object = json!({"metadata": {"name": format!("c{n}")}});
        let created = admin.post(CONFIG_MAPS, &object).await;
        assert_eq!(created.status, 201, "{}", created.text());
        let id = created.header("audit-id").to_owned();
        let stages: Vec<Value> = lines(&log).into_iter().filter(|event| event["auditID"] == *id).collect();
        assert_eq!(stages.len(), 2, "blocking mode records the events before the response");
        assert_eq!(stages[1]["objectRef"]["name"], format!("c{n}"));
        assert!(stages[1]["requestObject"].is_null());
    }
    let metrics = admin.get("/metrics").await.text();
    assert!(metrics.contains("apiserver_audit_level_total{level=\"Metadata\"}"), "{metrics}");
    assert!(metrics.contains("apiserver_audit_event_total"), "{metrics}");
    for filter in ["authentication", "audit", "priorityandfairness", "authorization"] {
        let counted = format!("apiserver_request_filter_duration_seconds_count{{filter=\"{filter}\"}}");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&counted)).unwrap_or_default();
        assert!(line.trim().parse::<u64>().is_ok_and(|count| count >= 20), "{filter}: {line:?}");
    }
    portico.signal(Signal::TERM);
    eventually("the server has exited", || {
        let runs = portico.is_running();
        async move { if runs { Err(()) } else { Ok(()) } }
    })
    .await;
    let complete = lines(&log).into_iter().filter(|event| event["stage"] == "ResponseComplete");
    let posts = complete.filter(|event| event["verb"] == "create" && event["user"]["username"] == "admin");
    assert_eq!(posts.count(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_reloads_a_valid_policy() {
    let none = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n";
    let (launch, log) = with_audit_log(Launch::new(), none);
    let policy = log.with_file_name("policy.yaml");
    let portico = launch.start().await;
    let admin = portico.admin();
    admin.get("/version").await;
    assert!(lines(&log).is_empty(), "nothing is recorded at level None");
    std::fs::write(&policy, METADATA).unwrap();
    portico.signal(Signal::HUP);
    eventually("requests are recorded under the new policy", || async {
        admin.get("/version").await;
        if lines(&log).is_empty() { Err(()) } else { Ok(()) }
    })
    .await;
    std::fs::write(&policy, "kind: Nonsense").unwrap();
    portico.signal(Signal::HUP);
    eventually("the log reports the invalid policy", || async {
        if portico.log().contains("unknown group version field") { Ok(()) } else { Err(portico.log()) }
    })
    .await;
    let id = admin.get("/version").await.header("audit-id").to_owned();
    events(&log, &id, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_gets_batches_and_the_last_one_at_shutdown() {
    let server = Backend::with_names("audit", &["127.0.0.1"]).await;
    let (launch, folder) = Launch::new().prepare_folder();
    std::fs::write(folder.join("ca.crt"), &server.ca).unwrap();
    let kubeconfig = json!({"kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "audit", "user": "me"}}],
        "clusters": [{"name": "audit", "cluster": {
            "server": format!("{}/events", server.url()), "certificate-authority": "ca.crt"}}],
        "users": [{"name": "me", "user": {"token": "known"}}]});
    let (file, policy) = (folder.join("audit.kubeconfig"), folder.join("policy.yaml"));
    std::fs::write(&file, kubeconfig.to_string()).unwrap();
    std::fs::write(&policy, METADATA).unwrap();
    let launch = launch.args(&[
        "--audit-policy-file",
        policy.to_str().unwrap(),
        "--audit-webhook-config-file",
        file.to_str().unwrap(),
        // Longer than the test: only the end of the process sends an incomplete batch.
        "--audit-webhook-batch-max-wait=10m",
    ]);
    let mut portico = launch.start().await;
    let id = portico.admin().get("/version").await.header("audit-id").to_owned();
    portico.signal(Signal::TERM);
    eventually("the server has exited", || {
        let runs = portico.is_running();
        async move { if runs { Err(()) } else { Ok(()) } }
    })
    .await;
    let seen = server.requests();
    let lists: Vec<Value> = seen.iter().map(|seen| serde_json::from_slice(&seen.body).unwrap()).collect();
    let events: Vec<&Value> = lists.iter().flat_map(|list| list["items"].as_array().unwrap()).collect();
    let stages: Vec<&Value> = events.iter().filter(|e| e["auditID"] == *id).map(|e| &e["stage"]).collect();
    assert_eq!(stages, ["RequestReceived", "ResponseComplete"]);
    assert!(events.iter().all(|event| event["kind"].is_null()), "elements of a list have no kind");
    assert_eq!(
        (&lists[0]["kind"], &lists[0]["apiVersion"]),
        (&json!("EventList"), &json!("audit.k8s.io/v1"))
    );
    assert_eq!(seen[0].target, "/events?timeout=30s");
    assert_eq!(seen[0].all("authorization"), ["Bearer known"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_audit_settings_are_refused_at_the_start() {
    let (launch, folder) = Launch::new().prepare_folder();
    let policy = folder.join("empty.yaml");
    std::fs::write(&policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []\n").unwrap();
    let (code, _, err) = launch.args(&["--audit-policy-file", policy.to_str().unwrap()]).run().await;
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("--audit-policy-file") && err.contains("illegal policy with 0 rules"), "{err}");
    for (arg, words) in [
        ("--audit-log-mode=sometimes", "invalid audit log mode sometimes"),
        ("--audit-log-format=xml", "invalid audit log format xml"),
        ("--audit-log-maxage=-1", "--audit-log-maxage -1 can't be a negative number"),
        ("--audit-log-version=v2", "invalid group version"),
        ("--audit-log-truncate-max-event-size=0", "invalid audit truncate log max event size 0"),
    ] {
        let (code, _, err) = Launch::new().args(&["--audit-log-path=x.log", arg]).run().await;
        assert_eq!((code, err.contains(words)), (Some(2), true), "{arg}: {err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_requests_have_been_audited() {
    let (launch, log) = with_audit_log(Launch::new(), METADATA);
    let portico = launch.start().await;
    let backend = Backend::start("held.example.com").await;
    register(&portico, &backend).await;
    backend.set_behavior(Behavior::Paused);
    let (admin, path) = (portico.admin(), backend.path("/things"));
    let request = async { admin.get(&path).await };
    let recorded = async {
        let of_path = |event: &Value| event["requestURI"] == *path;
        let first_event = eventually("the request is recorded", || async {
            lines(&log).into_iter().find(of_path).ok_or("nothing is")
        })
        .await;
        assert_eq!(first_event["stage"], "RequestReceived");
        let recorded_events: Vec<Value> = lines(&log).into_iter().filter(of_path).collect();
        assert_eq!(recorded_events.len(), 1, "the request is still running: {recorded_events:?}");
        backend.set_behavior(Behavior::Normal);
    };
    let (answer, ()) = tokio::join!(request, recorded);
    let stages = events(&log, answer.header("audit-id"), 2).await;
    assert_eq!(stages[1]["stage"], "ResponseComplete");
}
