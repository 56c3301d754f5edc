//! What both servers write into their audit logs about the same requests: the same policy, the same identifiers.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use portico_tests::PATIENCE;
use rustix::fs::{Mode, mkfifoat};
use serde_json::{Value, json};

use super::words;
use crate::normalise;
use crate::step::Step;

/// Which header names a request in the log.
const IDENTIFIER: &str = "Audit-ID";
/// What the identifiers of compared requests begin with.
const PREFIX: &str = "campaign-";

/// Each level, each verb, bodies with and without managed fields.
const POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [
    {"level": "None", "resources": [{"group": "coordination.k8s.io"}]},
    {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets", "configmaps", "serviceaccounts/token"]}]},
    {"level": "Request", "verbs": ["create", "update", "patch"], "resources": [{"group": "batch"}, {"group": "apps"}], "omitManagedFields": true},
    {"level": "RequestResponse", "resources": [{"group": "", "resources": ["pods", "pods/*", "services"]}], "omitManagedFields": true},
    {"level": "RequestResponse", "verbs": ["create", "update", "patch", "delete", "deletecollection", "get"]},
    {"level": "Metadata"}
]}"#;

/// A log that is read while it is written, through a pipe.
pub struct Trail {
    events: Receiver<Value>,
    /// What has been read, by the identifier of the request.
    read: BTreeMap<String, Vec<Value>>,
}

impl Trail {
    /// The flags for a server, and what it will write.
    pub fn begin(folder: &Path, name: &str) -> (Vec<String>, Self) {
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

    /// The events of these requests, in order, as they are compared; nothing when one of them does not end.
    fn of(&mut self, identifiers: &[String], name: &str) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
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
        let events = events.map(|event| compared(event, name)).collect();
        self.read.clear();
        events
    }
}

/// Reads the lines of compared requests.
fn follow(pipe: PathBuf) -> Receiver<Value> {
    let (send, events) = channel();
    std::thread::spawn(move || {
        // Open for writing, too, so that it does not end while nobody else has it open: servers look at it before they write.
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

/// An event without what differs each time.
fn compared(mut event: Value, name: &str) -> Value {
    for time in ["requestReceivedTimestamp", "stageTimestamp"] {
        event[time] = "<time>".into();
    }
    if let Some(annotations) = event["annotations"].as_object_mut() {
        // Of what took long.
        annotations.retain(|key, _| !key.starts_with("apiserver.latency.k8s.io/"));
    }
    let mut event = normalise::body(event, &Step::default(), &[]);
    words::replace(&mut event, None, name);
    event
}

/// Names the requests of a case.
pub fn identified(steps: &mut [Step], name: &str) -> Vec<String> {
    let name_of = |at: usize| format!("{PREFIX}{name}-{at}");
    for (at, step) in steps.iter_mut().enumerate() {
        step.headers.insert(IDENTIFIER.to_owned(), name_of(at).into());
    }
    // Who is served by nobody's policy leaves no trace, neither here nor there.
    let recorded = |step: &Step| !step.target.contains("/coordination.k8s.io/");
    steps.iter().enumerate().filter(|(_, step)| recorded(step)).map(|(at, _)| name_of(at)).collect()
}

/// What the logs say differently of these requests.
pub fn difference(
    ours: &mut Trail,
    theirs: &mut Trail,
    identifiers: &[String],
    name: &str,
) -> Option<String> {
    let (ours, theirs) = (ours.of(identifiers, name), theirs.of(identifiers, name));
    let pairs = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
    if let Some((ours, theirs)) = pairs {
        let request = format!("{} {} {}", theirs["verb"], theirs["requestURI"], theirs["stage"]);
        return Some(format!("  {request}\n{}", normalise::difference(theirs, ours)));
    }
    (ours.len() != theirs.len()).then(|| format!("  - {} events\n  + {} events", theirs.len(), ours.len()))
}
