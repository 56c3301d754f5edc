//! Audit record of a call: the head of its event, and the event once the request is known.
//!
//! The path of most methods describes the request. For calls of objects it is in the message, so the service begins the event.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use http::header::{HeaderValue, USER_AGENT};
use jiff::Timestamp;
use portico_audit::{Event, Level, ObjectReference, Stage, source_ips};
use portico_auditor::{AUDIT_ID, AuditedRequest, Auditor, new_audit_id};
use portico_kit::header_text::first;
use portico_machinery::{RequestInfo, Status, UserInfo};
use portico_proto::rpc_status::from_rpc;

use crate::listen::ConnectionInfo;

/// Audit record of a call.
pub(super) struct Recording {
    auditor: Arc<Auditor>,
    user: Option<Arc<UserInfo>>,
    /// Event with the data in the head of the call.
    head: Event,
    /// Event, once it has begun; `None` inside if the policy does not record the call.
    audited_request: OnceLock<Option<Arc<AuditedRequest>>>,
    /// True if the first event could not be stored, which ends the record.
    is_rejected: AtomicBool,
}

impl Recording {
    /// Creates the record of a call; `user` is `None` if the caller is not authenticated.
    pub(super) fn new<B>(
        auditor: Arc<Auditor>,
        request: &http::Request<B>,
        user: Option<Arc<UserInfo>>,
        audit_id: &HeaderValue,
    ) -> Self {
        let mut head =
            Event::new(Level::None, String::from_utf8_lossy(audit_id.as_bytes()), Timestamp::now());
        request.uri().path().clone_into(&mut head.request_uri);
        head.user = user.clone().unwrap_or_default();
        let headers = request.headers();
        if let Some(peer) = request.extensions().get::<ConnectionInfo>() {
            let (forwarded_for, real_ip) = (first(headers, "x-forwarded-for"), first(headers, "x-real-ip"));
            head.source_ips = source_ips(forwarded_for, real_ip, peer.address.ip());
        }
        head.set_user_agent(headers.get(USER_AGENT).map_or(&[], |user_agent| user_agent.as_bytes()));
        Self { auditor, user, head, audited_request: OnceLock::new(), is_rejected: AtomicBool::new(false) }
    }

    /// Begins the event of the call, which has only one.
    ///
    /// # Errors
    /// 500 if the event could not be stored and the policy requires it.
    pub(super) async fn begin(&self, info: &RequestInfo) -> Result<(), Box<Status>> {
        let Some(audited_request) = self.create_event(info) else { return Ok(()) };
        if audited_request.process(Stage::RequestReceived).await {
            return Ok(());
        }
        audited_request.count_rejected();
        self.is_rejected.store(true, Relaxed);
        Err(Box::new(Status::internal("failed to store audit event")))
    }

    /// Creates the event of the call; `None` if it has one or the policy does not record it.
    pub(super) fn create_event(&self, info: &RequestInfo) -> Option<&Arc<AuditedRequest>> {
        if self.is_begun() {
            return None;
        }
        let audit_event = self.audited_request.get_or_init(|| {
            let config = self.auditor.evaluate(self.user.as_deref(), info);
            (config.level != Level::None).then(|| {
                let mut event = self.head.clone();
                event.level = config.level;
                event.verb.clone_from(&info.verb);
                event.object_ref = ObjectReference::from_request(info);
                Arc::new(AuditedRequest::new(Arc::clone(&self.auditor), config, event))
            })
        });
        audit_event.as_ref()
    }

    /// True if the event has begun, that is, the request is known.
    pub(super) fn is_begun(&self) -> bool {
        self.audited_request.get().is_some()
    }

    /// Returns the event; `None` if the call is not recorded.
    pub(super) fn audited_request(&self) -> Option<&Arc<AuditedRequest>> {
        self.audited_request.get()?.as_ref().filter(|_| !self.is_rejected.load(Relaxed))
    }
}

/// Returns the audit ID that the client sent, or a new one.
pub(super) fn audit_id(headers: &HeaderMap) -> HeaderValue {
    match headers.get(AUDIT_ID) {
        Some(id) if !id.is_empty() => id.clone(),
        _ => new_audit_id(),
    }
}

/// Records the refusal of a call.
pub(super) fn note_refusal(audited_request: &AuditedRequest, refusal: &tonic::Status) {
    let status = from_rpc(refusal);
    audited_request.set_status(&status);
    audited_request.set_response_object(status.to_json().into());
}
