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
use crate::deliveries::EncodedEvent;
use crate::latencies::{Latencies, Latency};

const DECISION: &str = "authorization.k8s.io/decision";
const REASON: &str = "authorization.k8s.io/reason";
/// Message of the response status when the connection closed before a response was written.
const CLOSED_EARLY: &str = "Connection closed early";

/// Audit event of one request, and the auditor that delivers it.
pub struct AuditedRequest {
    auditor: Arc<Auditor>,
    config: AuditConfig,
    event: Mutex<Event>,
    latencies: Mutex<Latencies>,
    /// Event of stage `RequestReceived`, if it is deferred to be written together with the next one.
    deferred: Mutex<Option<EncodedEvent>>,
    /// Keeps the auditor from shutting down before the last event of the request.
    _open_request: TaskTrackerToken,
}

impl AuditedRequest {
    /// Starts the event of a request, recorded as `config` requires. `event` contains the data of the request's head.
    pub fn new(auditor: Arc<Auditor>, config: AuditConfig, event: Event) -> Self {
        let open_request = auditor.track_request();
        let (event, latencies, deferred) = (Mutex::new(event), Mutex::default(), Mutex::default());
        Self { auditor, config, event, latencies, deferred, _open_request: open_request }
    }

    /// Returns the audit level of the request.
    pub fn level(&self) -> Level {
        self.config.level
    }

    /// Adds annotations to the event. An existing value is kept. Latencies of slow requests are added
    /// to the last event only.
    pub fn annotate<K: Into<String>, V: Into<String>>(&self, notes: impl IntoIterator<Item = (K, V)>) {
        let mut event = self.event.lock();
        for (key, value) in notes {
            let key = key.into();
            if Latencies::is_latency(&key) {
                self.latencies.lock().add_reported(key, value.into());
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
    pub fn record_latency(&self, part: Latency, duration: Duration) {
        self.latencies.lock().add_measured(part, duration);
    }

    /// Records the impersonated user; `constraint` is the verb that allowed it, empty for `impersonate`.
    pub fn set_impersonated_user(&self, user: &Arc<UserInfo>, constraint: &str) {
        let mut event = self.event.lock();
        event.impersonated_user = Some(Arc::clone(user));
        constraint.clone_into(&mut event.impersonation_constraint);
    }

    /// Sets the request body, if the level records it and it is valid JSON.
    pub fn set_request_object(&self, json: Bytes) {
        if self.config.level >= Level::Request && is_json(&json) {
            self.event.lock().request_object = Some(self.strip_managed_fields(json));
        }
    }

    /// Sets the response object, as JSON, if the level records it.
    pub fn set_response_object(&self, json: Bytes) {
        if self.config.level >= Level::RequestResponse {
            self.event.lock().response_object = Some(self.strip_managed_fields(json));
        }
    }

    /// Marks the event as truncated: the response object is too large to be recorded.
    pub fn omit_response_object(&self) {
        self.event.lock().mark_truncated();
    }

    fn strip_managed_fields(&self, json: Bytes) -> Bytes {
        let stripped = self.config.omit_managed_fields.then(|| without_managed_fields(&json)).flatten();
        stripped.map_or(json, Bytes::from)
    }

    /// Fills in fields of the object reference that the request line does not contain, from the object in the request body.
    pub fn complete_reference(&self, reference: &ObjectReference) {
        if let Some(object_ref) = &mut self.event.lock().object_ref {
            object_ref.complete(
                &reference.namespace,
                &reference.name,
                &reference.uid,
                &reference.resource_version,
            );
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
    pub async fn process_received(&self) -> bool {
        if !self.auditor.can_defer() {
            return self.process(Stage::RequestReceived).await;
        }
        *self.deferred.lock() = self.encode_stage(Stage::RequestReceived);
        true
    }

    /// Writes the event of stage `RequestReceived`, if it is deferred.
    pub async fn write_deferred(&self) {
        let deferred = self.deferred.lock().take();
        if let Some(deferred) = deferred {
            self.auditor.process(deferred, Stage::RequestReceived).await;
        }
    }

    /// Delivers the event of a stage and waits as the modes of the backends require. Returns false if the
    /// request must be refused.
    pub async fn process(&self, stage: Stage) -> bool {
        match self.take_pending(stage) {
            Some(encoded) => self.auditor.process(encoded, stage).await,
            None => true,
        }
    }

    /// Delivers the event of a stage in the background, for callers that cannot wait.
    pub fn process_in_background(&self, stage: Stage) {
        if let Some(encoded) = self.take_pending(stage) {
            self.auditor.process_in_background(encoded, stage);
        }
    }

    /// Returns the deferred event, if any, followed by the event of this stage.
    fn take_pending(&self, stage: Stage) -> Option<EncodedEvent> {
        match (self.deferred.lock().take(), self.encode_stage(stage)) {
            (Some(deferred), Some(encoded)) => Some(concat_events(deferred, encoded)),
            (deferred, encoded) => deferred.or(encoded),
        }
    }

    /// Counts the request as refused because its first event was not stored.
    pub fn count_rejected(&self) {
        self.auditor.count_rejected();
    }

    fn encode_stage(&self, stage: Stage) -> Option<EncodedEvent> {
        if self.config.omit_stages.contains(stage) {
            return None;
        }
        let mut event = self.event.lock();
        event.stage = stage;
        if stage != Stage::RequestReceived {
            event.stage_time = Timestamp::now();
        }
        if stage == Stage::ResponseComplete {
            complete_event(&mut event, std::mem::take(&mut self.latencies.lock()));
        }
        Some(self.auditor.encode(&event))
    }
}

/// Concatenates two events for each backend.
fn concat_events(first: EncodedEvent, second: EncodedEvent) -> EncodedEvent {
    let both = first.into_iter().zip(second);
    both.map(|lines| match lines {
        (Some(first), Some(second)) => Some([first, second].concat().into()),
        (first, second) => first.or(second),
    })
    .collect()
}

fn complete_event(event: &mut Event, latencies: Latencies) {
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
