//! `/console/data/audit`: the latest audit events of this process, as its policy records them.
//!
//! With `?browsers=true`, the events of requests by browsers; otherwise those of all other requests. 404 without audit. Events
//! contain objects, Secrets among them, if the policy says so: permission to read this path is permission to read them.

use axum::extract::{Request, State};
use portico_gostd::url::first_value;
use portico_machinery::Status;
use portico_machinery::status::Reason;

use super::lines::lines;
use crate::endpoints::state::SharedEndpoints;
use crate::request::{RequestView, Response};
use crate::respond;

/// Serves one line per event.
pub async fn audit_tail(State(endpoints): SharedEndpoints, request: Request) -> Response {
    let Some(console) = &endpoints.console else { return respond::not_found(&request) };
    let Some(tail) = &console.audit_tail else {
        let message = "Audit is off. Start the server with --audit-policy-file and --audit-log-path or --audit-webhook-config-file.";
        return respond::status(&request, &Status::failure(Reason::NotFound, message));
    };
    let is_browsers = first_value(request.query(), "browsers").as_deref() == Some("true");
    lines(&request, if is_browsers { &tail.browsers } else { &tail.programs }, &console.stopping)
}
