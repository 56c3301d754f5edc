//! RBAC authorizer over a policy that followers of roles and bindings update.
//!
//! An empty policy allows nothing, so that a policy that has not arrived grants no permissions.

use parking_lot::RwLock;
use portico_machinery::rbac::{Fact, Key, Policy, PolicyDecision};
use portico_machinery::{Attributes, UserInfo};

use super::{Authorizer, Decision, UserRules};

/// RBAC authorizer with a policy that can change.
#[derive(Debug, Default)]
pub struct RbacAuthorizer {
    policy: RwLock<Policy>,
}

impl RbacAuthorizer {
    /// Sets the facts of objects; `None` removes an object.
    pub fn update(&self, changes: impl IntoIterator<Item = (Key, Option<Fact>)>) {
        let mut policy = self.policy.write();
        changes.into_iter().for_each(|(key, fact)| policy.set(key, fact));
    }

    /// Replaces the whole policy by these facts.
    pub fn replace(&self, facts: impl IntoIterator<Item = (Key, Fact)>) {
        let mut policy = Policy::default();
        facts.into_iter().for_each(|(key, fact)| policy.set(key, Some(fact)));
        *self.policy.write() = policy;
    }
}

impl Authorizer for RbacAuthorizer {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        self.policy.read().authorize(attributes)
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        self.policy.read().rules_for(user, namespace)
    }
}

impl Authorizer for Policy {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        match self.decide(&attributes.user, &attributes.request) {
            PolicyDecision::Allowed(reason) => Decision::allow(reason),
            PolicyDecision::NoOpinion(reason) => Decision::no_opinion(reason),
        }
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        let resolved = self.resolve_rules(user, namespace);
        UserRules { rules: resolved.rules, errors: resolved.errors, incomplete: false }
    }
}
