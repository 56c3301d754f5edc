//! Questions of code that cannot wait: an authorizer that notes what has to be asked, has it asked afterwards, and answers from that
//! when the code runs again.
//!
//! Rules of kinds and expressions of policies are evaluated at one go. Whoever runs them does so until nothing is open:
//!
//! ```text
//! loop {
//!     let outcome = rules(&questions);
//!     if !questions.settle().await { break outcome }
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

/// See the module.
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
    /// Questions to this authorizer; none yet.
    #[must_use]
    pub fn new(authorizer: Arc<dyn Authorizer>) -> Self {
        Self { authorizer, noted: Mutex::default() }
    }

    /// Has open questions answered. Whether there were any: then whatever asked them has to run again.
    pub async fn settle(&self) -> bool {
        let open = std::mem::take(&mut self.noted.lock().open);
        if open.is_empty() {
            return false;
        }
        for question in open {
            let decision = match self.authorizer.decide(&question).await {
                // Nobody else is there to be asked.
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

    /// Lets everybody do everything, if asked.
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
            // The second is asked once the first is answered.
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
