//! RBAC authorizer over a policy that followers of roles and bindings update.
//!
//! An empty policy allows nothing, so that a policy that has not arrived grants no permissions.

use parking_lot::RwLock;
use portico_machinery::rbac::{Fact, Key, Policy, Ruling};
use portico_machinery::{Attributes, UserInfo};

use super::{Authorizer, Decision, Rules};

/// RBAC authorizer with a policy that can change.
#[derive(Debug, Default)]
pub struct Rbac {
    policy: RwLock<Policy>,
}

impl Rbac {
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

impl Authorizer for Rbac {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        self.policy.read().authorize(attributes)
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules {
        self.policy.read().rules_for(user, namespace)
    }
}

impl Authorizer for Policy {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        match self.decide(&attributes.user, &attributes.request) {
            Ruling::Allowed(reason) => Decision::allow(reason),
            Ruling::Silent(reason) => Decision::no_opinion(reason),
        }
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules {
        let resolved = self.resolve(user, namespace);
        Rules { rules: resolved.rules, errors: resolved.errors, incomplete: false }
    }
}
