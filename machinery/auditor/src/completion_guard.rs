//! Guard that sends the last event of a request, regardless of how the request ends.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use portico_audit::Stage;
use portico_machinery::Status;

use crate::audited_request::AuditedRequest;

/// Sends the last event of a request when dropped: with the body of the response, or with the request.
pub struct CompletionGuard {
    audited: Option<Arc<AuditedRequest>>,
    /// Deadline of a request that has no response yet. If it has passed at drop, the event records a timeout.
    deadline: Option<Instant>,
}

impl CompletionGuard {
    /// Creates the guard of a request that times out at `deadline`, if it has one and no response is ready before.
    #[must_use]
    pub fn new(audited: Arc<AuditedRequest>, deadline: Option<Instant>) -> Self {
        Self { audited: Some(audited), deadline }
    }

    /// Notes that the response is known, so that the deadline no longer applies.
    pub fn set_responded(&mut self) {
        self.deadline = None;
    }

    /// Returns the request without sending its last event; the caller sends it.
    pub fn disarm(&mut self) -> Option<Arc<AuditedRequest>> {
        self.audited.take()
    }
}

impl Drop for CompletionGuard {
    fn drop(&mut self) {
        let Some(audited) = self.audited.take() else { return };
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            audited.set_status(&Status::timeout("request did not complete within the allotted timeout"));
        }
        audited.process_in_background(Stage::ResponseComplete);
    }
}

/// Returns the status that is recorded for a panic of a handler, with upstream's message.
#[must_use]
pub fn panic_status(panic: &(dyn Any + Send)) -> Status {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    let mut status = Status::internal("");
    status.message = format!("APIServer panic'd: {text}");
    status.details = None;
    status
}
