//! Comparison of the audit logs of both servers for the same requests, with the same policy and audit IDs.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use portico_tests::WAIT_LIMIT;
use rustix::fs::{Mode, mkfifoat};
use serde_json::{Value, json};

use super::words;
use crate::normalization;
use crate::step::Step;

/// Header with the audit ID of a request.
const IDENTIFIER: &str = "Audit-ID";
/// Prefix of the audit IDs of compared requests.
const PREFIX: &str = "campaign-";

/// Policy with each level, each verb, and bodies with and without managed fields.
const POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [
    {"level": "None", "resources": [{"group": "coordination.k8s.io"}]},
    {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets", "configmaps", "serviceaccounts/token"]}]},
    {"level": "Request", "verbs": ["create", "update", "patch"], "resources": [{"group": "batch"}, {"group": "apps"}], "omitManagedFields": true},
    {"level": "RequestResponse", "resources": [{"group": "", "resources": ["pods", "pods/*", "services"]}], "omitManagedFields": true},
    {"level": "RequestResponse", "verbs": ["create", "update", "patch", "delete", "deletecollection", "get"]},
    {"level": "Metadata"}
]}"#;

/// An audit log that is read through a pipe while the server writes it.
pub struct AuditLog {
    events: Receiver<Value>,
    /// Events that were read, by audit ID.
    read: BTreeMap<String, Vec<Value>>,
}

impl AuditLog {
    /// Returns the flags for a server, and its log.
    pub fn create(folder: &Path, name: &str) -> (Vec<String>, Self) {
        let (policy, pipe) = (folder.join("audit-policy.json"), folder.join(format!("audit-{name}")));
        std::fs::write(&policy, POLICY).unwrap();
        mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        let flags = vec![
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", pipe.display()),
            // A pipe cannot be rotated.
            "--audit-log-maxsize=1000000".to_owned(),
        ];
        (flags, Self { events: follow(pipe), read: BTreeMap::new() })
    }

    /// Returns the comparable events of these requests in order; empty if one of them does not complete.
    fn of(&mut self, identifiers: &[String], name: &str) -> Vec<Value> {
        let deadline = Instant::now() + WAIT_LIMIT;
        let ends = |events: &Vec<Value>| {
            events.iter().any(|event| event["stage"] == "ResponseComplete" || event["stage"] == "Panic")
        };
        while !identifiers.iter().all(|identifier| self.read.get(identifier).is_some_and(ends)) {
            let Ok(event) = self.events.recv_timeout(deadline.saturating_duration_since(Instant::now()))
            else {
                break;
            };
            let identifier = event["auditID"].as_str().unwrap_or_default().to_owned();
            self.read.entry(identifier).or_default().push(event);
        }
        let events =
            identifiers.iter().flat_map(|identifier| self.read.remove(identifier).unwrap_or_default());
        let events = events.map(|event| comparable(event, name)).collect();
        self.read.clear();
        events
    }
}

/// Reads the events of compared requests.
fn follow(pipe: PathBuf) -> Receiver<Value> {
    let (send, events) = channel();
    std::thread::spawn(move || {
        // Opened for writing as well, so that reading does not end while no server has it open: servers
        // check it before they write.
        let pipe = std::fs::File::options().read(true).write(true).open(pipe).unwrap();
        let lines = BufReader::new(pipe).lines();
        let mark = format!("\"auditID\":\"{PREFIX}");
        for line in lines.map_while(Result::ok).filter(|line| line.contains(&mark)) {
            let event =
                serde_json::from_str(&line).unwrap_or_else(|error| json!({"line": error.to_string()}));
            if send.send(event).is_err() {
                return;
            }
        }
    });
    events
}

/// Returns an event without variable parts.
fn comparable(mut event: Value, name: &str) -> Value {
    for time in ["requestReceivedTimestamp", "stageTimestamp"] {
        event[time] = "<time>".into();
    }
    if let Some(annotations) = event["annotations"].as_object_mut() {
        // Annotations of slow requests.
        annotations.retain(|key, _| !key.starts_with("apiserver.latency.k8s.io/"));
    }
    let mut event = normalization::body(event, &Step::default(), &[]);
    words::replace(&mut event, None, name);
    event
}

/// Sets the audit IDs of the requests of a case.
pub fn set_audit_ids(steps: &mut [Step], name: &str) -> Vec<String> {
    let name_of = |at: usize| format!("{PREFIX}{name}-{at}");
    for (at, step) in steps.iter_mut().enumerate() {
        step.headers.insert(IDENTIFIER.to_owned(), name_of(at).into());
    }
    // Requests for Leases are audited by neither server.
    let recorded = |step: &Step| !step.target.contains("/coordination.k8s.io/");
    steps.iter().enumerate().filter(|(_, step)| recorded(step)).map(|(at, _)| name_of(at)).collect()
}

/// Returns the difference of the events of these requests.
pub fn difference(
    ours: &mut AuditLog,
    theirs: &mut AuditLog,
    identifiers: &[String],
    name: &str,
) -> Option<String> {
    let (ours, theirs) = (ours.of(identifiers, name), theirs.of(identifiers, name));
    let pairs = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
    if let Some((ours, theirs)) = pairs {
        let request = format!("{} {} {}", theirs["verb"], theirs["requestURI"], theirs["stage"]);
        return Some(format!("  {request}\n{}", normalization::difference(theirs, ours)));
    }
    (ours.len() != theirs.len()).then(|| format!("  - {} events\n  + {} events", theirs.len(), ours.len()))
}
