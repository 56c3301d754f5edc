//! `/console/data/audit`: the last events that this process has recorded, as its policy asks for them.
//!
//! 404 where nothing is recorded. Events may carry objects, Secrets among them, if the policy says so: whoever may read this path
//! may read them.

use axum::extract::{Request, State};
use portico_machinery::Status;
use portico_machinery::status::Reason;

use super::lines::lines;
use crate::endpoints::state::Shared;
use crate::request::Response;
use crate::respond;

/// One line for each event.
pub async fn audit_tail(State(endpoints): Shared, request: Request) -> Response {
    let Some(console) = &endpoints.console else { return respond::not_found(&request) };
    match &console.audit_tail {
        Some(tail) => lines(&request, tail, &console.stopping),
        None => {
            let message = "nothing is recorded: audit needs --audit-policy-file, and a log or a webhook";
            respond::status(&request, &Status::failure(Reason::NotFound, message))
        }
    }
}
