//! One request's event in the making. Whoever answers the request adds to it; each stage sends it as it is then.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use portico_audit::{
    AuditConfig, Event, Level, ObjectReference, ResponseStatus, Stage, without_managed_fields,
};
use portico_machinery::{Status, UserInfo};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::auditor::Auditor;
use crate::deliveries::Encoded;
use crate::latencies::{Latencies, Latency};

const DECISION: &str = "authorization.k8s.io/decision";
const REASON: &str = "authorization.k8s.io/reason";
/// Of a response that never came.
const CLOSED_EARLY: &str = "Connection closed early";

/// See the module.
pub struct Audited {
    auditor: Arc<Auditor>,
    config: AuditConfig,
    event: Mutex<Event>,
    latencies: Mutex<Latencies>,
    /// The first one, where it may be written together with the next.
    held: Mutex<Option<Encoded>>,
    /// Until its last event has come.
    _under_way: TaskTrackerToken,
}

impl Audited {
    /// A request that is recorded as `config` says, from what its head says.
    pub fn new(auditor: Arc<Auditor>, config: AuditConfig, event: Event) -> Self {
        let under_way = auditor.begun();
        let (event, latencies, held) = (Mutex::new(event), Mutex::default(), Mutex::default());
        Self { auditor, config, event, latencies, held, _under_way: under_way }
    }

    /// How much is recorded.
    pub fn level(&self) -> Level {
        self.config.level
    }

    /// Notes values for the event; what is known stays. Latencies are kept for the last event of a slow request.
    pub fn annotate<K: Into<String>, V: Into<String>>(&self, notes: impl IntoIterator<Item = (K, V)>) {
        let mut event = self.event.lock();
        for (key, value) in notes {
            let key = key.into();
            if Latencies::has(&key) {
                self.latencies.lock().reported(key, value.into());
            } else if !event.annotate(key.clone(), value) {
                tracing::warn!(
                    key,
                    audit_id = event.audit_id,
                    "audit annotation already set, ignoring the second value"
                );
            }
        }
    }

    /// Notes how long a part of the request took.
    pub fn took(&self, part: Latency, took: Duration) {
        self.latencies.lock().measured(part, took);
    }

    /// Whom the caller impersonates, and by which verb other than `impersonate`.
    pub fn impersonate(&self, user: &Arc<UserInfo>, constraint: &str) {
        let mut event = self.event.lock();
        event.impersonated_user = Some(Arc::clone(user));
        constraint.clone_into(&mut event.impersonation_constraint);
    }

    /// What was sent, as JSON.
    pub fn set_request_object(&self, json: Bytes) {
        if self.config.level >= Level::Request && is_json(&json) {
            self.event.lock().request_object = Some(self.object(json));
        }
    }

    /// What was answered, as JSON.
    pub fn set_response_object(&self, json: Bytes) {
        if self.config.level >= Level::RequestResponse {
            self.event.lock().response_object = Some(self.object(json));
        }
    }

    /// What was answered is too large to be recorded.
    pub fn leave_out_response_object(&self) {
        self.event.lock().note_truncated();
    }

    fn object(&self, json: Bytes) -> Bytes {
        let stripped = self.config.omit_managed_fields.then(|| without_managed_fields(&json)).flatten();
        stripped.map_or(json, Bytes::from)
    }

    /// What the object says that was sent, where the request line says nothing.
    pub fn complete_reference(&self, of: &ObjectReference) {
        if let Some(known) = &mut self.event.lock().object_ref {
            known.complete(&of.namespace, &of.name, &of.uid, &of.resource_version);
        }
    }

    /// The answer is this Status.
    pub fn set_status(&self, status: &Status) {
        self.event.lock().response_status = Some(ResponseStatus::from(status));
    }

    /// What was decided of the caller's permission and why; nothing where it could not be decided.
    pub fn set_decision(&self, decision: Option<(bool, &str)>) {
        match decision {
            Some((allowed, reason)) => {
                let verdict = if allowed { "allow" } else { "forbid" };
                self.annotate([(DECISION, verdict), (REASON, reason)]);
            }
            None => self.annotate([(REASON, "internal error")]),
        }
    }

    /// Whether it is known how the request ended.
    pub fn has_status(&self) -> bool {
        self.event.lock().response_status.is_some()
    }

    /// The answer's code.
    pub fn set_code(&self, code: u16) {
        self.event.lock().response_status.get_or_insert_default().code = code;
    }

    /// Sends the first event; false when the request must not go on. Where nobody would wait for it, it is held and written with
    /// the next one, in one call: [`Audited::write_held`] is to come before the request waits for anything.
    pub async fn received(&self) -> bool {
        if !self.auditor.may_hold() {
            return self.process(Stage::RequestReceived).await;
        }
        *self.held.lock() = self.encoded(Stage::RequestReceived);
        true
    }

    /// Sends the first event, if it is held.
    pub async fn write_held(&self) {
        let held = self.held.lock().take();
        if let Some(held) = held {
            self.auditor.process(held, Stage::RequestReceived).await;
        }
    }

    /// Sends the event of a stage, and waits as the modes of the backends say; false when the request must not go on.
    pub async fn process(&self, stage: Stage) -> bool {
        match self.next(stage) {
            Some(encoded) => self.auditor.process(encoded, stage).await,
            None => true,
        }
    }

    /// The same where nobody can wait.
    pub fn hand_over(&self, stage: Stage) {
        if let Some(encoded) = self.next(stage) {
            self.auditor.hand_over(encoded, stage);
        }
    }

    /// What there is to be sent: what is held, and the event of this stage.
    fn next(&self, stage: Stage) -> Option<Encoded> {
        match (self.held.lock().take(), self.encoded(stage)) {
            (Some(held), Some(encoded)) => Some(joined(held, encoded)),
            (held, encoded) => held.or(encoded),
        }
    }

    /// The request was refused because its first event was not stored.
    pub fn rejected(&self) {
        self.auditor.rejected();
    }

    fn encoded(&self, stage: Stage) -> Option<Encoded> {
        if self.config.omit_stages.contains(stage) {
            return None;
        }
        let mut event = self.event.lock();
        event.stage = stage;
        if stage != Stage::RequestReceived {
            event.stage_time = Timestamp::now();
        }
        if stage == Stage::ResponseComplete {
            complete(&mut event, std::mem::take(&mut self.latencies.lock()));
        }
        Some(self.auditor.encode(&event))
    }
}

/// Both, for each backend the one behind the other.
fn joined(first: Encoded, second: Encoded) -> Encoded {
    let both = first.into_iter().zip(second);
    both.map(|lines| match lines {
        (Some(first), Some(second)) => Some([first, second].concat().into()),
        (first, second) => first.or(second),
    })
    .collect()
}

fn complete(event: &mut Event, latencies: Latencies) {
    event.response_status.get_or_insert_with(|| ResponseStatus {
        status: "Success".to_owned(),
        message: CLOSED_EARLY.to_owned(),
        code: 200,
        ..ResponseStatus::default()
    });
    let total = event.stage_time.duration_since(event.request_received);
    for (key, value) in latencies.annotations(Duration::try_from(total).unwrap_or_default()) {
        event.annotate(key, value);
    }
}

/// Patches may be YAML, or nothing at all: upstream loses such an event, here it has no object.
fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}
