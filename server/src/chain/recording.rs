//! What a call's event begins with, and the event once it is known what the call asks for.
//!
//! Of most methods that is known by their path. What a call of objects asks for is in its message: the service begins its event.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use http::header::{HeaderValue, USER_AGENT};
use jiff::Timestamp;
use portico_audit::{Event, Level, ObjectReference, Stage, source_ips};
use portico_auditor::{AUDIT_ID, Audited, Auditor, new_audit_id};
use portico_kit::header_text::first;
use portico_machinery::{RequestInfo, Status, UserInfo};
use portico_proto::rpc_status::from_rpc;

use crate::listen::Connected;

/// See the module.
pub(super) struct Recording {
    auditor: Arc<Auditor>,
    user: Option<Arc<UserInfo>>,
    /// The event, from the call's head.
    head: Event,
    /// Begun; nothing where the policy asks for nothing.
    audited: OnceLock<Option<Arc<Audited>>>,
    /// The first event was not stored: there are no others.
    is_rejected: AtomicBool,
}

impl Recording {
    /// Of a call of this user; of nobody where nobody could be authenticated.
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
        if let Some(peer) = request.extensions().get::<Connected>() {
            let (forwarded, real) = (first(headers, "x-forwarded-for"), first(headers, "x-real-ip"));
            head.source_ips = source_ips(forwarded, real, peer.address.ip());
        }
        head.set_user_agent(headers.get(USER_AGENT).map_or(&[], |agent| agent.as_bytes()));
        Self { auditor, user, head, audited: OnceLock::new(), is_rejected: AtomicBool::new(false) }
    }

    /// Begins the event of a call that asks for this; a call has one.
    ///
    /// # Errors
    /// 500, when the event had to be stored and was not.
    pub(super) async fn begin(&self, info: &RequestInfo) -> Result<(), Box<Status>> {
        let Some(audited) = self.make(info) else { return Ok(()) };
        if audited.process(Stage::RequestReceived).await {
            return Ok(());
        }
        audited.rejected();
        self.is_rejected.store(true, Relaxed);
        Err(Box::new(Status::internal("failed to store audit event")))
    }

    /// The event of this call, if it has none yet and the policy wants one.
    pub(super) fn make(&self, info: &RequestInfo) -> Option<&Arc<Audited>> {
        if self.is_begun() {
            return None;
        }
        let made = self.audited.get_or_init(|| {
            let config = self.auditor.evaluate(self.user.as_deref(), info);
            (config.level != Level::None).then(|| {
                let mut event = self.head.clone();
                event.level = config.level;
                event.verb.clone_from(&info.verb);
                event.object_ref = ObjectReference::of(info);
                Arc::new(Audited::new(Arc::clone(&self.auditor), config, event))
            })
        });
        made.as_ref()
    }

    /// Whether it is known what the call asks for.
    pub(super) fn is_begun(&self) -> bool {
        self.audited.get().is_some()
    }

    /// The event; nothing of calls that are not recorded.
    pub(super) fn audited(&self) -> Option<&Arc<Audited>> {
        self.audited.get()?.as_ref().filter(|_| !self.is_rejected.load(Relaxed))
    }
}

/// The id that the client gave to a call, or a new one.
pub(super) fn audit_id(headers: &HeaderMap) -> HeaderValue {
    match headers.get(AUDIT_ID) {
        Some(id) if !id.is_empty() => id.clone(),
        _ => new_audit_id(),
    }
}

/// The call is refused.
pub(super) fn note_refusal(audited: &Audited, refusal: &tonic::Status) {
    let status = from_rpc(refusal);
    audited.set_status(&status);
    audited.set_response_object(status.to_json().into());
}
