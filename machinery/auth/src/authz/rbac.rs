//! The RBAC authorizer: a policy, alone or as whoever follows roles and bindings keeps it up to date.
//!
//! Empty it allows nothing: a policy that has not arrived is no permission.

use parking_lot::RwLock;
use portico_machinery::rbac::{Fact, Key, Policy, Ruling};
use portico_machinery::{Attributes, UserInfo};

use super::{Authorizer, Decision, Rules};

/// A policy that changes.
#[derive(Debug, Default)]
pub struct Rbac {
    policy: RwLock<Policy>,
}

impl Rbac {
    /// Takes up what objects say; nothing stands for one that is gone.
    pub fn update(&self, changes: impl IntoIterator<Item = (Key, Option<Fact>)>) {
        let mut policy = self.policy.write();
        changes.into_iter().for_each(|(key, fact)| policy.set(key, fact));
    }

    /// Takes up what objects say and forgets everything else.
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
