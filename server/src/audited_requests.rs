//! Audit of requests by components of the control service, recorded like those of users.

use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use portico_audit::{Event, Level, ObjectReference, Stage};
use portico_auditor::{AuditedRequest, Auditor, new_audit_id};
use portico_machinery::Status;
use portico_manifests::Requests;
use portico_registry::{Answer, Call};

use crate::grpc::audit_records::{detail_for, record_answer_in};

/// Handler of requests, behind an audit log if there is one.
pub(crate) struct AuditedRequests<S> {
    handler: S,
    auditor: Option<Arc<Auditor>>,
}

impl<S> AuditedRequests<S> {
    pub(crate) fn new(handler: S, auditor: Option<Arc<Auditor>>) -> Self {
        Self { handler, auditor }
    }

    /// Creates the audit event of a request; `None` if the policy does not record it.
    fn audited_request(&self, call: &Call) -> Option<AuditedRequest> {
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
        event.object_ref = ObjectReference::from_request(&info);
        Some(AuditedRequest::new(Arc::clone(auditor), config, event))
    }
}

impl<S: Requests> Requests for AuditedRequests<S> {
    fn serve(&self, mut call: Call) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let Some(audited_request) = self.audited_request(&call) else {
                return self.handler.serve(call).await;
            };
            if !audited_request.process(Stage::RequestReceived).await {
                audited_request.count_rejected();
                return Answer::status(Status::internal("failed to store audit event"));
            }
            call.audit_detail = detail_for(&audited_request);
            let answer = self.handler.serve(call).await;
            record_answer_in(&audited_request, &answer);
            audited_request.process(Stage::ResponseComplete).await;
            answer
        })
    }
}
