//! Loss of audit events in case of failures.

use std::future::ready;
use std::net::TcpListener;
use std::path::Path;

use portico_kit::tasks::TaskSet;
use portico_proto::objects::{Call, DoRequest, Target};
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Backend, Behavior, Launch, eventually, wait_until};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::audit::{lines, with_audit_log};

/// Policy that selects only ConfigMaps, so that the process starts and can be examined whatever happens to its log.
const ONLY_CONFIG_MAPS: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n\
    - {level: Metadata, resources: [{group: '', resources: [configmaps]}], verbs: [create]}\n- {level: None}\n";
const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n\
    - {level: Metadata, resources: [{group: '', resources: [configmaps]}], verbs: [create]}\n- {level: None}\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_leaves_complete_events_of_answered_requests() {
    let (launch, log) = with_audit_log(Launch::new(), ONLY_CONFIG_MAPS);
    let mut portico = launch.start().await;
    let tasks = TaskSet::new();
    let (sender, mut answers) = tokio::sync::mpsc::channel(8);
    for client in 0..8 {
        let (admin, sender) = (portico.admin(), sender.clone());
        tasks.spawn("client", async move {
            let mut answered = Vec::new();
            for n in 0.. {
                let name = format!("c{client}-{n}");
                let body = json!({"metadata": {"name": name}}).to_string();
                let request = hyper::Request::post(CONFIG_MAPS).header("content-type", "application/json");
                match admin.fetch(request.body(http_body_util::Full::new(body.into())).unwrap()).await {
                    Ok(answer) if answer.status == 201 => answered.push(name),
                    _ => break,
                }
            }
            // The receiver is dropped if the test has failed.
            let _ = sender.send(answered).await;
        });
    }
    drop(sender);
    eventually("the log file has more than 40 kB", || async {
        let written = std::fs::metadata(&log).map_or(0, |file| file.len());
        if written > 40_000 { Ok(()) } else { Err(written) }
    })
    .await;
    portico.kill();
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.ends_with('\n'), "the last line is whole");
    let written: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    while let Some(names) = answers.recv().await {
        for name in names {
            assert!(written.iter().any(|event| event["objectRef"]["name"] == *name), "{name} was answered");
        }
    }
}

/// Writes a kubeconfig for the webhook at this cluster, next to the log.
fn kubeconfig(log: &Path, cluster: &Value) -> String {
    let kubeconfig = json!({"kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "audit"}}],
        "clusters": [{"name": "audit", "cluster": cluster}]});
    let file = log.with_file_name("audit.kubeconfig");
    std::fs::write(&file, kubeconfig.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disconnected_clients_write_is_audited() {
    let webhook = Backend::with_names("audit", &["127.0.0.1"]).await;
    let (launch, log) = with_audit_log(Launch::new(), ONLY_CONFIG_MAPS);
    std::fs::write(log.with_file_name("ca.crt"), &webhook.ca).unwrap();
    let file = kubeconfig(&log, &json!({"server": webhook.url(), "certificate-authority": "ca.crt"}));
    let launch = launch.args(&[
        "--audit-webhook-config-file",
        &file,
        "--audit-webhook-mode=blocking",
        // Five attempts: the client has disconnected before the last one.
        "--audit-webhook-initial-backoff=2s",
    ]);
    let portico = launch.start().await;
    webhook.set_behavior(Behavior::Code(503));
    let mut client = portico.admin().dial().await.unwrap();
    let body = json!({"metadata": {"name": "c"}}).to_string();
    let head = format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer admin-token\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    client.write_all(head.as_bytes()).await.unwrap();
    wait_until("the event is sent for the first time", || ready(!webhook.requests().is_empty())).await;
    drop(client);
    let before = webhook.requests().len();
    webhook.set_behavior(Behavior::Normal);
    wait_until("the event is sent again", || ready(webhook.requests().len() > before)).await;
    let event: Value = serde_json::from_slice(&webhook.last_request().body).unwrap();
    assert_eq!(event["items"][0]["objectRef"]["name"], "c", "{event}");
    let metrics = portico.admin().get("/metrics").await.text();
    assert!(!metrics.contains("apiserver_audit_error_total{plugin=\"webhook\"}"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_for_a_hanging_webhook_are_dropped_and_counted() {
    // The system accepts connections, and no process responds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (launch, log) = with_audit_log(Launch::new(), ONLY_CONFIG_MAPS);
    let url = format!("http://{}/events", silent.local_addr().unwrap());
    let file = kubeconfig(&log, &json!({"server": url}));
    let launch = launch.args(&[
        "--audit-webhook-config-file",
        &file,
        "--audit-webhook-batch-buffer-size=1",
        "--audit-webhook-batch-max-size=1",
        "--audit-webhook-batch-throttle-enable=false",
    ]);
    let portico = launch.start().await;
    let admin = portico.admin();
    let total = 60;
    for n in 0..total {
        let created = admin.post(CONFIG_MAPS, &json!({"metadata": {"name": format!("c{n}")}})).await;
        assert_eq!(created.status, 201, "{}", created.text());
    }
    assert_eq!(lines(&log).len(), total, "the log has them all");
    let metrics = admin.get("/metrics").await.text();
    let value = |series: &str| {
        let line = metrics.lines().find(|line| line.starts_with(series)).unwrap_or_default();
        line.rsplit(' ').next().unwrap_or_default().parse::<f64>().unwrap_or_default() as usize
    };
    let lost = value("apiserver_audit_error_total{plugin=\"buffered\"}");
    // Sixteen are in flight, one waits for a slot, one is in the buffer.
    assert!((total - 18..total).contains(&lost), "{lost} of {total}");
    assert_eq!(value("apiserver_audit_event_total"), total);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strict_log_that_cannot_be_written_refuses_requests_over_http_and_grpc() {
    let (launch, folder) = Launch::new().prepare_folder();
    let policy = folder.join("policy.yaml");
    std::fs::write(&policy, POLICY).unwrap();
    let launch = launch.args(&[
        "--audit-policy-file",
        policy.to_str().unwrap(),
        // A device that is always full.
        "--audit-log-path=/dev/full",
        "--audit-log-mode=blocking-strict",
    ]);
    let portico = launch.start().await;
    let admin = portico.admin();
    let refused = admin.post(CONFIG_MAPS, &json!({"metadata": {"name": "c"}})).await;
    assert_eq!(refused.status, 500);
    let words = format!("Internal Server Error: \"{CONFIG_MAPS}\": failed to store audit event\n");
    assert_eq!(refused.text(), words);
    let listed = admin.get(CONFIG_MAPS).await;
    assert_eq!(listed.status, 200, "requests that the policy does not record are served");
    assert!(!listed.text().contains("\"name\":\"c\""), "the request was not carried out");

    let target = Target {
        version: "v1".into(),
        resource: "configmaps".into(),
        namespace: "default".into(),
        ..Target::default()
    };
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}).to_string();
    let call = Call { target: Some(target), verb: "create".into(), body: body.into(), ..Call::default() };
    let refused =
        portico.control_as("admin").objects().r#do(DoRequest { call: Some(call) }).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Internal);
    assert_eq!(refused.message(), "Internal error occurred: failed to store audit event");
    let metrics = admin.get("/metrics").await.text();
    assert!(metrics.contains("apiserver_audit_requests_rejected_total 2"), "{metrics}");
    assert!(metrics.contains("apiserver_audit_error_total{plugin=\"log\"} 2"), "{metrics}");
}
