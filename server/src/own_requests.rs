//! Audit of requests by components of the control service, recorded like those of users.

use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use portico_audit::{Event, Level, ObjectReference, Stage};
use portico_auditor::{Audited, Auditor, new_audit_id};
use portico_machinery::Status;
use portico_manifests::Requests;
use portico_registry::{Answer, Call};

use crate::grpc::recorded::{note_answer, wanted_by};

/// Handler of requests, behind an audit log if there is one.
pub(crate) struct OwnRequests<S> {
    server: S,
    auditor: Option<Arc<Auditor>>,
}

impl<S> OwnRequests<S> {
    pub(crate) fn new(server: S, auditor: Option<Arc<Auditor>>) -> Self {
        Self { server, auditor }
    }

    /// Creates the audit event of a request; `None` if the policy does not record it.
    fn audited(&self, call: &Call) -> Option<Audited> {
        if matches!(call.verb.as_str(), "get" | "list") {
            // Reads are never recorded: components read many objects to decide on writes.
            return None;
        }
        let auditor = self.auditor.as_ref()?;
        let info = call.target.request_info(&call.verb, &call.query);
        let config = auditor.evaluate(Some(&call.user), &info);
        if config.level == Level::None {
            return None;
        }
        let id = new_audit_id();
        let mut event = Event::new(config.level, String::from_utf8_lossy(id.as_bytes()), Timestamp::now());
        event.request_uri = call.target.path();
        if !call.query.is_empty() {
            event.request_uri.push('?');
            event.request_uri.push_str(&call.query);
        }
        event.user = Arc::new(call.user.clone());
        event.set_user_agent(call.user_agent.as_bytes());
        event.verb.clone_from(&info.verb);
        event.object_ref = ObjectReference::of(&info);
        Some(Audited::new(Arc::clone(auditor), config, event))
    }
}

impl<S: Requests> Requests for OwnRequests<S> {
    fn serve(&self, mut call: Call) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let Some(audited) = self.audited(&call) else { return self.server.serve(call).await };
            if !audited.process(Stage::RequestReceived).await {
                audited.rejected();
                return Answer::status(Status::internal("failed to store audit event"));
            }
            call.recorded = wanted_by(&audited);
            let answer = self.server.serve(call).await;
            note_answer(&audited, &answer);
            audited.process(Stage::ResponseComplete).await;
            answer
        })
    }
}
