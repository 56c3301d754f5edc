//! What the handler chain found out about a request before it came here.

use std::sync::Arc;

use http::HeaderValue;
use portico_kit::walk::Walk;
use portico_machinery::RequestInfo;
use tokio::time::Instant;

use crate::headers::{ClientAddress, Identity};

/// The chain's findings. Borrowed: only what becomes a header is copied.
#[derive(Clone, Copy, Debug)]
pub struct ProxyContext<'a> {
    /// Who calls, after impersonation. Absent means that the chain is broken: 500 `missing user`.
    pub identity: Option<&'a Identity>,
    /// The request's audit id, sent on as `Audit-ID`; empty sends none.
    pub audit_id: &'a HeaderValue,
    /// The client's address, appended to `X-Forwarded-For`.
    pub client: Option<&'a ClientAddress>,
    /// What the request asks for; discovery paths get a deadline of their own, upgrades are refused there.
    pub request_info: &'a RequestInfo,
    /// When the request must be answered; absent for long-running requests.
    pub deadline: Option<Instant>,
    /// Where its stages are noted, if somebody asked for that.
    pub walk: Option<&'a Arc<Walk>>,
}
