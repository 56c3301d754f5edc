//! Authorization checks of code that cannot wait: an authorizer that records checks that have to be delegated, resolves them
//! later, and returns the decisions when the code runs again.
//!
//! Validation rules of kinds and expressions of policies are evaluated synchronously. The caller repeats the evaluation until no
//! check is pending:
//!
//! ```text
//! loop {
//!     let outcome = evaluate(&authorizer);
//!     if !authorizer.resolve_pending().await { break outcome }
//! }
//! ```

use std::sync::Arc;

use parking_lot::Mutex;
use portico_machinery::{Attributes, UserInfo};

use super::{Authorizer, Decision, UserRules, Verdict};

/// Authorization checks by the expressions and rules of one write that need a webhook.
///
/// Limit (Authentication and authorization): further checks are denied.
const MAX_CHECKS: usize = 256;

/// Authorizer that defers delegated decisions.
pub struct DeferredAuthorizer {
    authorizer: Arc<dyn Authorizer>,
    checks: Mutex<DeferredChecks>,
}

#[derive(Default)]
struct DeferredChecks {
    decided: Vec<(Attributes, Decision)>,
    pending: Vec<Attributes>,
}

impl DeferredAuthorizer {
    /// Wraps an authorizer.
    #[must_use]
    pub fn new(authorizer: Arc<dyn Authorizer>) -> Self {
        Self { authorizer, checks: Mutex::default() }
    }

    /// Decides pending checks. Returns true if there were any, so that the evaluation has to be repeated.
    pub async fn resolve_pending(&self) -> bool {
        let open = std::mem::take(&mut self.checks.lock().pending);
        if open.is_empty() {
            return false;
        }
        for question in open {
            let decision = match self.authorizer.decide(&question).await {
                // No further authorizer exists to delegate to.
                Decision { verdict: Verdict::Delegate, .. } => Decision::no_opinion(""),
                decision => decision,
            };
            self.checks.lock().decided.push((question, decision));
        }
        true
    }
}

impl Authorizer for DeferredAuthorizer {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        let decision = self.authorizer.authorize(attributes);
        if decision.verdict != Verdict::Delegate {
            return decision;
        }
        let mut checks = self.checks.lock();
        if let Some((_, decision)) = checks.decided.iter().find(|(question, _)| question == attributes) {
            return decision.clone();
        }
        if checks.decided.len() + checks.pending.len() < MAX_CHECKS && !checks.pending.contains(attributes) {
            checks.pending.push(attributes.clone());
        }
        decision
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        self.authorizer.rules_for(user, namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::DecisionFuture;

    /// Authorizer that allows everything, but only in [`Authorizer::decide`].
    struct DelegateThenAllow;

    impl Authorizer for DelegateThenAllow {
        fn authorize(&self, _: &Attributes) -> Decision {
            Decision::delegate()
        }

        fn decide<'a>(&'a self, attributes: &'a Attributes) -> DecisionFuture<'a> {
            let allowed = attributes.request.path.len() < 4;
            Box::pin(std::future::ready(if allowed { Decision::allow("") } else { Decision::delegate() }))
        }
    }

    fn poll_ready<F: Future>(future: F) -> F::Output {
        use std::task::{Context, Poll, Waker};
        match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("the future must be ready"),
        }
    }

    fn path(path: &str) -> Attributes {
        Attributes::path(UserInfo::new("alice", [""; 0]), "get", path)
    }

    #[test]
    fn a_resolved_check_is_decided_in_the_next_evaluation() {
        let questions = DeferredAuthorizer::new(Arc::new(DelegateThenAllow));
        let mut runs = 0;
        let both = loop {
            runs += 1;
            // The second check is requested only after the first is decided.
            let both = questions.authorize(&path("/a")).is_allowed()
                && questions.authorize(&path("/b")).is_allowed();
            if !poll_ready(questions.resolve_pending()) {
                break both;
            }
        };
        assert_eq!((both, runs), (true, 3));
    }

    #[test]
    fn an_unresolvable_check_is_denied_and_the_loop_ends() {
        let questions = DeferredAuthorizer::new(Arc::new(DelegateThenAllow));
        assert!(!questions.authorize(&path("/long")).is_allowed());
        assert!(poll_ready(questions.resolve_pending()));
        assert_eq!(questions.authorize(&path("/long")).verdict, Verdict::NoOpinion);
        assert!(!poll_ready(questions.resolve_pending()));
    }

    #[test]
    fn the_number_of_checks_per_evaluation_is_limited() {
        let questions = DeferredAuthorizer::new(Arc::new(DelegateThenAllow));
        for n in 0..MAX_CHECKS + 5 {
            questions.authorize(&path(&format!("/{n}")));
        }
        assert_eq!(questions.checks.lock().pending.len(), MAX_CHECKS);
        assert!(poll_ready(questions.resolve_pending()));
        questions.authorize(&path("/one more"));
        assert!(!poll_ready(questions.resolve_pending()));
    }
}
