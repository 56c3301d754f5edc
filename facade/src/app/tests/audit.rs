//! Audit events of requests whose handlers panic or do not end.

use std::path::PathBuf;

use portico_auditor::{
    AuditBatchSettings, AuditDelivery, AuditFormat, AuditLogSettings, AuditMode, AuditSettings,
};
use portico_kit::rotating_file::Rotation;
use serde_json::Value;

use super::*;

/// Facade with an audit policy and a log in a temporary folder. Each event is written before its response is sent.
struct AuditedRig {
    rig: Rig,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl AuditedRig {
    fn new(shutdown_timeout: Duration) -> Self {
        let (rig, folder) = (Rig::default(), tempfile::tempdir().unwrap());
        let (policy, log) = (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
        let text = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n";
        std::fs::write(&policy, text).unwrap();
        let batches = AuditBatchSettings { buffer: 1, max_size: 1, max_wait: Duration::ZERO, throttle: None };
        let delivery = AuditDelivery { mode: AuditMode::Blocking, batches, truncation: None };
        let rotation = Rotation { max_bytes: 0, max_age_days: 0, max_backups: 0, compress: false };
        let to_log = AuditLogSettings { path: log.clone(), format: AuditFormat::Json, rotation, delivery };
        let settings = AuditSettings {
            policy_file: Some(policy),
            log: Some(to_log),
            shutdown_timeout,
            ..AuditSettings::default()
        };
        let auditor = Auditor::start(&settings, &rig.registry).unwrap();
        Self { rig: Rig { auditor, ..rig }, log, _folder: folder }
    }

    fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[tokio::test]
async fn a_panic_of_a_handler_is_recorded_as_stage_panic_only() {
    let recorded = AuditedRig::new(Duration::from_secs(5));
    let got = recorded.rig.send(request("GET /panic", &["Audit-ID: broken"])).await;
    assert_eq!(got.code, 500, "{}", got.body);
    let events = recorded.events();
    let stages: Vec<&Value> = events.iter().map(|event| &event["stage"]).collect();
    assert_eq!(stages, ["RequestReceived", "Panic"], "{events:?}");
    let panic = &events[1];
    assert_eq!((&panic["auditID"], &panic["requestURI"]), (&"broken".into(), &"/panic".into()));
    assert_eq!(panic["user"]["username"], "root");
    let status = &panic["responseStatus"];
    assert_eq!((&status["code"], &status["reason"]), (&500.into(), &"InternalError".into()), "{status}");
    assert_eq!(status["message"], "APIServer panic'd: asked to");

    assert_eq!(recorded.rig.send(request("GET /x", &[])).await.code, 200, "and nobody else's");
    let metrics = recorded.rig.registry.encode(Format::Text);
    let counted = "apiserver_request_filter_duration_seconds_count{filter=\"audit\"} 2";
    assert!(metrics.contains(counted), "{metrics}");
}

#[tokio::test]
async fn shutdown_waits_for_a_hanging_request_until_its_timeout() {
    let recorded = AuditedRig::new(Duration::from_millis(20));
    let mut app = recorded.rig.app();
    let Ok(unread) = app.call(request("GET /slow-body", &[])).await;
    let auditor = recorded.rig.auditor.clone().unwrap();
    tokio::time::timeout(Duration::from_secs(4), auditor.shutdown()).await.unwrap();
    let stages: Vec<Value> = recorded.events().into_iter().map(|mut event| event["stage"].take()).collect();
    assert_eq!(stages, ["RequestReceived"], "its last event is lost");
    drop(unread);
}
