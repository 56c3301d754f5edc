//! Impersonation: replaces the caller when it may, and takes the asking headers off.

use std::sync::Arc;

use http::Response;
use http::header::HeaderName;
use portico_auth::Authorizer;
use portico_auth::impersonate::{ImpersonationRequest, consumes_header, impersonate};
use portico_kit::metrics::Histogram;

use super::authentication::Headers;
use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;
use crate::respond;

/// See the module.
pub struct Impersonation {
    /// Who decides who may be whom.
    pub authorizer: Arc<dyn Authorizer>,
    /// `apiserver_request_filter_duration_seconds{filter="impersonation"}`
    pub duration: Histogram,
}

impl Filter for Impersonation {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        let asking: Vec<HeaderName> =
            x.parts.headers.keys().filter(|name| consumes_header(name.as_str())).cloned().collect();
        if asking.is_empty() {
            return next.handle(x).await;
        }
        let begin = std::time::Instant::now();
        let decided = self.decide(x);
        for name in asking {
            x.parts.headers.remove(&name);
        }
        self.duration.observe(begin.elapsed().as_secs_f64());
        match decided {
            Ok(()) => next.handle(x).await,
            Err(status) => respond::forbidden(x, &status),
        }
    }
}

impl Impersonation {
    fn decide(&self, x: &mut RequestContext) -> Result<(), Box<portico_machinery::Status>> {
        let Some(wanted) = ImpersonationRequest::from_headers(&Headers(&x.parts.headers))? else {
            return Ok(());
        };
        let caller = x.user.take().unwrap_or_default();
        let decided = impersonate(&self.authorizer, &caller, &x.info, &wanted);
        match decided {
            Ok(impersonated) => {
                x.user = Some(Arc::new(impersonated.user));
                x.impersonator = Some(caller);
                Ok(())
            }
            Err(status) => {
                x.user = Some(caller);
                Err(status)
            }
        }
    }
}
