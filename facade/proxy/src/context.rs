//! Results of the handler chain that the proxy needs for a request.

use std::sync::Arc;

use http::HeaderValue;
use portico_kit::request_trace::RequestTrace;
use portico_machinery::RequestInfo;
use tokio::time::Instant;

use crate::headers::{ClientAddress, Identity};

/// Results of the handler chain. Borrowed: only the values that become headers are copied.
#[derive(Clone, Copy, Debug)]
pub struct ProxyContext<'a> {
    /// The caller, after impersonation. `None` is a bug of the chain: 500 `missing user`.
    pub identity: Option<&'a Identity>,
    /// Audit ID of the request, sent as `Audit-ID` unless empty.
    pub audit_id: &'a HeaderValue,
    /// Address of the client, appended to `X-Forwarded-For`.
    pub client: Option<&'a ClientAddress>,
    /// Description of the request; discovery paths have a separate deadline and refuse upgrades.
    pub request_info: &'a RequestInfo,
    /// Deadline of the response; `None` for long-running requests.
    pub deadline: Option<Instant>,
    /// Trace that records the stages of the request, if the client requested one.
    pub trace: Option<&'a Arc<RequestTrace>>,
}
