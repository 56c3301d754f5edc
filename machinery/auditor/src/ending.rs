//! The last event of a request, whichever way the request ends.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use portico_audit::Stage;
use portico_machinery::Status;

use crate::audited::Audited;

/// Sends the last event of a request when this is dropped: with the response's body, or with the request.
pub struct Ending {
    audited: Option<Arc<Audited>>,
    /// Of a request without an answer yet.
    deadline: Option<Instant>,
}

impl Ending {
    /// Of a request that ends at `deadline` at the latest, if it is not answered before.
    #[must_use]
    pub fn new(audited: Arc<Audited>, deadline: Option<Instant>) -> Self {
        Self { audited: Some(audited), deadline }
    }

    /// How it ended is known.
    pub fn answered(&mut self) {
        self.deadline = None;
    }

    /// The last event is sent otherwise.
    pub fn disarm(&mut self) -> Option<Arc<Audited>> {
        self.audited.take()
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let Some(audited) = self.audited.take() else { return };
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            audited.set_status(&Status::timeout("request did not complete within the allotted timeout"));
        }
        audited.hand_over(Stage::ResponseComplete);
    }
}

/// What is recorded of a handler that panicked, in upstream's words.
#[must_use]
pub fn panicked(panic: &(dyn Any + Send)) -> Status {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    let mut status = Status::internal("");
    status.message = format!("APIServer panic'd: {text}");
    status.details = None;
    status
}
