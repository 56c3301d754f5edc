//! The layers around the director, one file each, outermost first as [`crate::app`] lists them, and what they share.
//!
//! A layer that inspects the request, and passes or refuses it, is a `ValidateRequest`; one that also changes the response is a
//! function for `AroundLayer`; any other has its own service and future. No layer boxes a request that does not wait.

pub mod active_config;
pub mod audit;
pub mod audit_init;
pub mod authentication;
pub mod authorization;
pub mod cors;
pub mod foreign_page;
pub mod goaway;
pub mod header_values;
pub mod hsts;
pub mod impersonation;
pub mod lifecycle;
pub mod max_in_flight;
pub mod mux_complete;
pub mod panic_recovery;
pub mod priority_and_fairness;
pub mod received_timestamp;
pub mod request_deadline;
pub mod request_info;
pub mod retry_after;
pub mod route_trace;
pub mod test_faults;
pub mod timeout;
pub mod trace;
pub mod wait_group;
pub mod warning;
pub mod watch_termination;

use crate::request::{Request, RequestView};

/// True if upstream exempts the request from refusals during a shutdown (1.4): its own client, health and metrics.
fn is_exempt_from_shutdown(request: &Request) -> bool {
    let path = request.uri().path();
    ["/readyz", "/livez", "/healthz", "/metrics"].iter().any(|p| path.starts_with(p))
        || request.header(http::header::USER_AGENT).starts_with("kube-apiserver/")
}
