//! The filters of the handler chain, one file each, and what a filter is.
//!
//! A filter gets the request and everything behind it: it may refuse, add to the context, wait, and look at the
//! response on its way out. Filters and handlers are nested as types, so that a request passes them without a
//! lock, a box or a table. Their order stands in [`crate::chain`], nowhere else.

pub mod audit_init;
pub mod authentication;
pub mod authorization;
pub mod cache_control;
pub mod cors;
pub mod goaway;
pub mod hsts;
pub mod http_log;
pub mod impersonation;
pub mod max_in_flight;
pub mod mux_complete;
pub mod panic_recovery;
pub mod received_timestamp;
pub mod request_deadline;
pub mod request_info;
pub mod retry_after;
pub mod timeout;
pub mod wait_group;
pub mod warning;
pub mod watch_termination;

use std::future::Future;

use http::Response;

use crate::body::Body;
use crate::context::RequestContext;

/// Answers a request.
pub trait Handler: Send + Sync + 'static {
    /// The answer. It may take the request out of the context.
    fn handle<'a>(&'a self, x: &'a mut RequestContext) -> impl Future<Output = Response<Body>> + Send + 'a;
}

/// Stands before a handler.
pub trait Filter: Send + Sync + 'static {
    /// Answers, or has `next` answer.
    fn apply<'a, H: Handler>(
        &'a self,
        x: &'a mut RequestContext,
        next: &'a H,
    ) -> impl Future<Output = Response<Body>> + Send + 'a;
}

/// A handler behind a filter.
#[derive(Debug)]
pub struct Filtered<F, H> {
    /// Outside.
    pub filter: F,
    /// Inside.
    pub next: H,
}

impl<F: Filter, H: Handler> Handler for Filtered<F, H> {
    fn handle<'a>(&'a self, x: &'a mut RequestContext) -> impl Future<Output = Response<Body>> + Send + 'a {
        self.filter.apply(x, &self.next)
    }
}

/// A filter that is not configured lets everything pass.
impl<F: Filter> Filter for Option<F> {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        match self {
            Some(filter) => filter.apply(x, next).await,
            None => next.handle(x).await,
        }
    }
}

/// Upstream's exemptions from refusals during a shutdown (1.4): its own client, health and metrics.
fn exempt_from_shutdown(x: &RequestContext) -> bool {
    let path = x.parts.uri.path();
    ["/readyz", "/livez", "/healthz", "/metrics"].iter().any(|p| path.starts_with(p))
        || x.header(http::header::USER_AGENT).starts_with("kube-apiserver/")
}
