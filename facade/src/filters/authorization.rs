//! Authorization: may this user do this? Asked before anybody knows whether the path exists.
//!
//! What cannot be told without the objects is asked of whoever keeps them; while nobody can be asked, nobody may.

use std::sync::Arc;

use http::Response;
use portico_auth::authz::Decider;
use portico_auth::{Authorizer, Verdict, forbidden};
use portico_machinery::{Attributes, Status};
use prometheus_client::metrics::histogram::Histogram;

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;
use crate::local::unavailable;
use crate::respond;

/// See the module.
pub struct Authorization {
    /// Who decides.
    pub authorizer: Arc<dyn Authorizer>,
    /// Who knows the objects.
    pub decider: Arc<dyn Decider>,
    /// `apiserver_request_filter_duration_seconds{filter="authorization"}`
    pub duration: Histogram,
}

impl Filter for Authorization {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        let begin = std::time::Instant::now();
        let refusal = self.refusal(x).await;
        self.duration.observe(begin.elapsed().as_secs_f64());
        match refusal {
            Some(status) => respond::forbidden(x, &status),
            None => next.handle(x).await,
        }
    }
}

impl Authorization {
    async fn refusal(&self, x: &mut RequestContext) -> Option<Box<Status>> {
        // Lent for the question, so that nothing is copied.
        let user = x.user.take().unwrap_or_default();
        let attributes = Attributes::new(user, std::mem::take(&mut x.info));
        let decided = self.authorizer.authorize(&attributes);
        let decided = match decided.verdict {
            Verdict::Ask => self.decider.decide(&attributes).await,
            _ => Some(decided),
        };
        let refusal = match &decided {
            Some(decision) if decision.allowed() => None,
            Some(decision) => Some(Box::new(forbidden(&attributes, &decision.reason))),
            None => Some(Box::new(unavailable(attributes.request.is_read_only(), "nobody could be asked"))),
        };
        x.user = Some(attributes.user);
        x.info = attributes.request;
        refusal
    }
}
