//! Authorization: may this user do this? Asked before anybody knows whether the path exists.

use std::sync::Arc;

use http::Response;
use portico_auth::{Authorizer, forbidden};
use portico_machinery::Attributes;
use prometheus_client::metrics::histogram::Histogram;

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;
use crate::respond;

/// See the module.
pub struct Authorization {
    /// Who decides.
    pub authorizer: Arc<dyn Authorizer>,
    /// `apiserver_request_filter_duration_seconds{filter="authorization"}`
    pub duration: Histogram,
}

impl Filter for Authorization {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        let begin = std::time::Instant::now();
        // Lent for the question, so that nothing is copied.
        let user = x.user.take().unwrap_or_default();
        let attributes = Attributes::new(user, std::mem::take(&mut x.info));
        let decision = self.authorizer.authorize(&attributes);
        let refusal = (!decision.allowed()).then(|| forbidden(&attributes, &decision.reason));
        x.user = Some(attributes.user);
        x.info = attributes.request;
        self.duration.observe(begin.elapsed().as_secs_f64());
        match refusal {
            Some(status) => respond::status(x, &status),
            None => next.handle(x).await,
        }
    }
}
