//! Authorization: may this user do this? Asked before anybody knows whether the path exists.
//!
//! What cannot be told without the objects is asked of whoever keeps them; while nobody can be asked, nobody may.

use std::sync::Arc;

use http::Response;
use portico_auth::authz::Decider;
use portico_auth::{Authorizer, Decision, Verdict, forbidden};
use portico_machinery::{Attributes, Status};

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;
use crate::local::unavailable;
use crate::metrics::access::AuthorizationMetrics;
use crate::respond;

/// See the module.
pub struct Authorization {
    /// Who decides.
    pub authorizer: Arc<dyn Authorizer>,
    /// Who knows the objects.
    pub decider: Arc<dyn Decider>,
    /// How it ends, and how long it takes.
    pub metrics: AuthorizationMetrics,
}

impl Filter for Authorization {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        let begin = std::time::Instant::now();
        let (decision, refusal) = self.judge(x).await;
        self.metrics.done(decision.map(|decision| decision.verdict), begin.elapsed());
        match refusal {
            Some(status) => respond::forbidden(x, &status),
            None => next.handle(x).await,
        }
    }
}

impl Authorization {
    async fn judge(&self, x: &mut RequestContext) -> (Option<Decision>, Option<Box<Status>>) {
        // Lent for the question, so that nothing is copied unless somebody else has to be asked: what is lent across an
        // await is lost to the log and the metrics when the deadline ends this filter.
        let user = x.user.take().unwrap_or_default();
        let attributes = Attributes::new(user, std::mem::take(&mut x.info));
        let decided = self.authorizer.authorize(&attributes);
        let decided = match decided.verdict {
            Verdict::Ask => {
                x.user = Some(attributes.user.clone());
                x.info.clone_from(&attributes.request);
                self.decider.decide(&attributes).await
            }
            _ => Some(decided),
        };
        let refusal = match &decided {
            Some(decision) if decision.allowed() => None,
            Some(decision) => Some(Box::new(forbidden(&attributes, &decision.reason))),
            None => Some(Box::new(unavailable(attributes.request.is_read_only(), "nobody could be asked"))),
        };
        x.user = Some(attributes.user);
        x.info = attributes.request;
        (decided, refusal)
    }
}
