//! The RBAC authorizer: an index that whoever follows roles and bindings keeps up to date.
//!
//! Empty it allows nothing: a policy that has not arrived is no permission.

use parking_lot::RwLock;
use portico_machinery::rbac::{Fact, Key, Policy, Ruling};
use portico_machinery::{Attributes, UserInfo};

use super::{Authorizer, Decision, Rules};

/// See the module.
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
        match self.policy.read().decide(&attributes.user, &attributes.request) {
            Ruling::Allowed(reason) => Decision::allow(reason),
            Ruling::Silent(reason) => Decision::no_opinion(reason),
        }
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules {
        let resolved = self.policy.read().resolve(user, namespace);
        Rules { rules: resolved.rules, errors: resolved.errors, incomplete: false }
    }
}
