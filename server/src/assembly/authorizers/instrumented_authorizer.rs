//! Authorizer that counts its decisions (upstream's `InstrumentedAuthorizer`).

use std::sync::Arc;

use portico_auth::authz::{AuthorizationMode, Authorizer, Decision, DecisionFuture, UserRules, Verdict};
use portico_machinery::{Attributes, UserInfo};
use prometheus_client::metrics::counter::Counter;

use super::metrics::AuthorizationMetrics;

/// Authorizer that counts its decisions.
pub(super) struct InstrumentedAuthorizer {
    authorizer: Arc<dyn Authorizer>,
    allowed: Counter,
    denied: Counter,
}

impl InstrumentedAuthorizer {
    /// Wraps an authorizer; its type and name become metric labels.
    pub(super) fn new(
        mode: AuthorizationMode,
        name: &str,
        authorizer: Arc<dyn Authorizer>,
        metrics: &AuthorizationMetrics,
    ) -> Self {
        let counter = |decision| metrics.decisions(mode.name(), name, decision);
        Self { authorizer, allowed: counter("allowed"), denied: counter("denied") }
    }

    fn count(&self, decision: Decision) -> Decision {
        match decision.verdict {
            Verdict::Allow => drop(self.allowed.inc()),
            Verdict::Deny => drop(self.denied.inc()),
            Verdict::NoOpinion | Verdict::Delegate => {}
        }
        decision
    }
}

impl Authorizer for InstrumentedAuthorizer {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        self.count(self.authorizer.authorize(attributes))
    }

    fn decide<'a>(&'a self, attributes: &'a Attributes) -> DecisionFuture<'a> {
        Box::pin(async move { self.count(self.authorizer.decide(attributes).await) })
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        self.authorizer.rules_for(user, namespace)
    }
}
