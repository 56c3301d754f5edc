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

use super::{Authorizer, Decision, Rules, Verdict};

/// Authorization checks by the expressions and rules of one write that need a webhook.
///
/// Limit (Authentication and authorization): further checks are denied.
const MAX_QUESTIONS: usize = 256;

/// Authorizer that defers delegated decisions.
pub struct Questions {
    authorizer: Arc<dyn Authorizer>,
    noted: Mutex<Noted>,
}

#[derive(Default)]
struct Noted {
    answered: Vec<(Attributes, Decision)>,
    open: Vec<Attributes>,
}

impl Questions {
    /// Wraps an authorizer.
    #[must_use]
    pub fn new(authorizer: Arc<dyn Authorizer>) -> Self {
        Self { authorizer, noted: Mutex::default() }
    }

    /// Decides pending checks. Returns true if there were any, so that the evaluation has to be repeated.
    pub async fn settle(&self) -> bool {
        let open = std::mem::take(&mut self.noted.lock().open);
        if open.is_empty() {
            return false;
        }
        for question in open {
            let decision = match self.authorizer.decide(&question).await {
                // No further authorizer exists to delegate to.
                Decision { verdict: Verdict::Ask, .. } => Decision::no_opinion(""),
                decision => decision,
            };
            self.noted.lock().answered.push((question, decision));
        }
        true
    }
}

impl Authorizer for Questions {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        let decision = self.authorizer.authorize(attributes);
        if decision.verdict != Verdict::Ask {
            return decision;
        }
        let mut noted = self.noted.lock();
        if let Some((_, known)) = noted.answered.iter().find(|(question, _)| question == attributes) {
            return known.clone();
        }
        if noted.answered.len() + noted.open.len() < MAX_QUESTIONS && !noted.open.contains(attributes) {
            noted.open.push(attributes.clone());
        }
        decision
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules {
        self.authorizer.rules_for(user, namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::Authorizing;

    /// Authorizer that allows everything, but only in [`Authorizer::decide`].
    struct Remote;

    impl Authorizer for Remote {
        fn authorize(&self, _: &Attributes) -> Decision {
            Decision::ask()
        }

        fn decide<'a>(&'a self, attributes: &'a Attributes) -> Authorizing<'a> {
            let allowed = attributes.request.path.len() < 4;
            Box::pin(std::future::ready(if allowed { Decision::allow("") } else { Decision::ask() }))
        }
    }

    fn now<F: Future>(future: F) -> F::Output {
        use std::task::{Context, Poll, Waker};
        match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("nothing here waits"),
        }
    }

    fn path(path: &str) -> Attributes {
        Attributes::path(UserInfo::new("alice", [""; 0]), "get", path)
    }

    #[test]
    fn what_is_asked_is_known_when_it_is_asked_again() {
        let questions = Questions::new(Arc::new(Remote));
        let mut runs = 0;
        let both = loop {
            runs += 1;
            // The second check is requested only after the first is decided.
            let both =
                questions.authorize(&path("/a")).allowed() && questions.authorize(&path("/b")).allowed();
            if !now(questions.settle()) {
                break both;
            }
        };
        assert_eq!((both, runs), (true, 3));
    }

    #[test]
    fn who_cannot_be_asked_allows_nothing_and_ends() {
        let questions = Questions::new(Arc::new(Remote));
        assert!(!questions.authorize(&path("/long")).allowed());
        assert!(now(questions.settle()));
        assert_eq!(questions.authorize(&path("/long")).verdict, Verdict::NoOpinion);
        assert!(!now(questions.settle()));
    }

    #[test]
    fn one_run_asks_so_many_questions_and_no_more() {
        let questions = Questions::new(Arc::new(Remote));
        for n in 0..MAX_QUESTIONS + 5 {
            questions.authorize(&path(&format!("/{n}")));
        }
        assert_eq!(questions.noted.lock().open.len(), MAX_QUESTIONS);
        assert!(now(questions.settle()));
        questions.authorize(&path("/one more"));
        assert!(!now(questions.settle()));
    }
}
