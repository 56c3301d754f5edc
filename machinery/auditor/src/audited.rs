//! Audit event of one request. The handlers of the request add to the event; each stage sends its current state.

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
/// Message of the response status when the connection closed before a response was written.
const CLOSED_EARLY: &str = "Connection closed early";

/// Audit event of one request, and the auditor that delivers it.
pub struct Audited {
    auditor: Arc<Auditor>,
    config: AuditConfig,
    event: Mutex<Event>,
    latencies: Mutex<Latencies>,
    /// Event of stage `RequestReceived`, if it is deferred to be written together with the next one.
    held: Mutex<Option<Encoded>>,
    /// Keeps the auditor from shutting down before the last event of the request.
    _under_way: TaskTrackerToken,
}

impl Audited {
    /// Starts the event of a request, recorded as `config` requires. `event` contains the data of the request's head.
    pub fn new(auditor: Arc<Auditor>, config: AuditConfig, event: Event) -> Self {
        let under_way = auditor.begun();
        let (event, latencies, held) = (Mutex::new(event), Mutex::default(), Mutex::default());
        Self { auditor, config, event, latencies, held, _under_way: under_way }
    }

    /// Returns the audit level of the request.
    pub fn level(&self) -> Level {
        self.config.level
    }

    /// Adds annotations to the event. An existing value is kept. Latencies are added to the last event only, if the request is
    /// slow.
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

    /// Records the duration of a part of the request.
    pub fn took(&self, part: Latency, took: Duration) {
        self.latencies.lock().measured(part, took);
    }

    /// Records the impersonated user; `constraint` is the verb that allowed it, empty for `impersonate`.
    pub fn impersonate(&self, user: &Arc<UserInfo>, constraint: &str) {
        let mut event = self.event.lock();
        event.impersonated_user = Some(Arc::clone(user));
        constraint.clone_into(&mut event.impersonation_constraint);
    }

    /// Sets the request body, if the level records it and it is valid JSON.
    pub fn set_request_object(&self, json: Bytes) {
        if self.config.level >= Level::Request && is_json(&json) {
            self.event.lock().request_object = Some(self.object(json));
        }
    }

    /// Sets the response object, as JSON, if the level records it.
    pub fn set_response_object(&self, json: Bytes) {
        if self.config.level >= Level::RequestResponse {
            self.event.lock().response_object = Some(self.object(json));
        }
    }

    /// Notes that the response object is too large to be recorded.
    pub fn leave_out_response_object(&self) {
        self.event.lock().note_truncated();
    }

    fn object(&self, json: Bytes) -> Bytes {
        let stripped = self.config.omit_managed_fields.then(|| without_managed_fields(&json)).flatten();
        stripped.map_or(json, Bytes::from)
    }

    /// Fills in fields of the object reference that the request line does not contain, from the object in the request body.
    pub fn complete_reference(&self, of: &ObjectReference) {
        if let Some(known) = &mut self.event.lock().object_ref {
            known.complete(&of.namespace, &of.name, &of.uid, &of.resource_version);
        }
    }

    /// Sets the response status to that of a response with a Status object.
    pub fn set_status(&self, status: &Status) {
        self.event.lock().response_status = Some(ResponseStatus::from(status));
    }

    /// Records the authorization decision: allowed or not, and the reason. `None` if the authorizer failed.
    pub fn set_decision(&self, decision: Option<(bool, &str)>) {
        match decision {
            Some((allowed, reason)) => {
                let verdict = if allowed { "allow" } else { "forbid" };
                self.annotate([(DECISION, verdict), (REASON, reason)]);
            }
            None => self.annotate([(REASON, "internal error")]),
        }
    }

    /// True if the response status is known.
    pub fn has_status(&self) -> bool {
        self.event.lock().response_status.is_some()
    }

    /// Sets the HTTP status code of the response.
    pub fn set_code(&self, code: u16) {
        self.event.lock().response_status.get_or_insert_default().code = code;
    }

    /// Processes the event of stage `RequestReceived`. Returns false if the request must be refused. If no backend makes the
    /// request wait for this event, the event is deferred and written with the next one, in one call;
    /// [`AuditedRequest::write_deferred`] must be called before the request waits for anything.
    pub async fn received(&self) -> bool {
        if !self.auditor.may_hold() {
            return self.process(Stage::RequestReceived).await;
        }
        *self.held.lock() = self.encoded(Stage::RequestReceived);
        true
    }

    /// Writes the event of stage `RequestReceived`, if it is deferred.
    pub async fn write_held(&self) {
        let held = self.held.lock().take();
        if let Some(held) = held {
            self.auditor.process(held, Stage::RequestReceived).await;
        }
    }

    /// Delivers the event of a stage and waits as the modes of the backends require. Returns false if the request must be
    /// refused.
    pub async fn process(&self, stage: Stage) -> bool {
        match self.next(stage) {
            Some(encoded) => self.auditor.process(encoded, stage).await,
            None => true,
        }
    }

    /// Delivers the event of a stage in the background, for callers that cannot wait.
    pub fn hand_over(&self, stage: Stage) {
        if let Some(encoded) = self.next(stage) {
            self.auditor.hand_over(encoded, stage);
        }
    }

    /// Returns the deferred event, if any, followed by the event of this stage.
    fn next(&self, stage: Stage) -> Option<Encoded> {
        match (self.held.lock().take(), self.encoded(stage)) {
            (Some(held), Some(encoded)) => Some(joined(held, encoded)),
            (held, encoded) => held.or(encoded),
        }
    }

    /// Counts the request as refused because its first event was not stored.
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

/// Concatenates two events for each backend.
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

/// True for valid JSON. Patches may be YAML or empty: upstream loses such an event, here it has no request object.
fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}
