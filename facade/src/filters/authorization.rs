//! Authorization: may this user do this? Asked before anybody knows whether the path exists.

use std::sync::Arc;

use http::Response;
use portico_auth::Authorizer;
use portico_machinery::{Attributes, Status};
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
        let refusal = self.refusal(x);
        self.duration.observe(begin.elapsed().as_secs_f64());
        match refusal {
            Some(status) => respond::forbidden(x, &status),
            None => next.handle(x).await,
        }
    }
}

impl Authorization {
    fn refusal(&self, x: &mut RequestContext) -> Option<Box<Status>> {
        // Lent for the question, so that nothing is copied.
        let user = x.user.take().unwrap_or_default();
        let attributes = Attributes::new(user, std::mem::take(&mut x.info));
        let refusal = self.authorizer.check(&attributes).err();
        x.user = Some(attributes.user);
        x.info = attributes.request;
        refusal
    }
}
