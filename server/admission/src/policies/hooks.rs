//! Policies with their bindings, joined when one of them has changed.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use portico_machinery::Object;
use portico_registry::{Objects, Result};

use super::binding::Binding;
use super::policy::Policy;
use crate::derived::Derived;
use crate::matching::MatchTarget;

const GROUP: &str = "admissionregistration.k8s.io";

/// A policy, and its bindings in order of their names.
pub(super) struct Hook<E> {
    pub(super) policy: Arc<Policy<E>>,
    pub(super) bindings: Vec<Arc<Binding>>,
}

/// All policies of a kind that are bound.
pub(super) struct Hooks<E> {
    policies: Derived<Policy<E>>,
    bindings: Derived<Binding>,
    joined: ArcSwap<Joined<E>>,
}

/// What a join was made of, and what came of it.
struct Joined<E> {
    policies: Arc<[Arc<Policy<E>>]>,
    bindings: Arc<[Arc<Binding>]>,
    hooks: Arc<[Hook<E>]>,
}

impl<E> Hooks<E> {
    /// Those of these resources; `compile` makes a policy of an object.
    pub(super) fn new(
        policies: &str,
        bindings: &str,
        compile: impl Fn(&Object) -> Policy<E> + Send + Sync + 'static,
    ) -> Self {
        let none = Joined { policies: Arc::from([]), bindings: Arc::from([]), hooks: Arc::from([]) };
        Self {
            policies: Derived::new(GROUP, policies, compile),
            bindings: Derived::new(GROUP, bindings, Binding::read),
            joined: ArcSwap::from_pointee(none),
        }
    }

    /// Whether there may be any.
    pub(super) fn any(&self, objects: &Objects) -> bool {
        self.policies.any(objects) && self.bindings.any(objects)
    }

    /// Whether the rules of one of them match a request, as far as that is known without waiting: if not, it may be.
    pub(super) fn concern(&self, objects: &Objects, target: &MatchTarget<'_>) -> bool {
        let known = self.policies.known(objects).zip(self.bindings.known(objects));
        let Some((policies, bindings)) = known else { return true };
        let hooks = self.join(policies, bindings);
        hooks.iter().any(|hook| hook.policy.constraints.match_rules(objects, target).is_some())
    }

    /// All of them, in order of the policies' names.
    pub(super) async fn all(&self, objects: &Objects) -> Result<Arc<[Hook<E>]>> {
        let (policies, bindings) = (self.policies.all(objects).await?, self.bindings.all(objects).await?);
        Ok(self.join(policies, bindings))
    }

    fn join(&self, policies: Arc<[Arc<Policy<E>>]>, bindings: Arc<[Arc<Binding>]>) -> Arc<[Hook<E>]> {
        let joined = self.joined.load();
        if Arc::ptr_eq(&joined.policies, &policies) && Arc::ptr_eq(&joined.bindings, &bindings) {
            return Arc::clone(&joined.hooks);
        }
        let mut of_policy: HashMap<&str, Vec<Arc<Binding>>> = HashMap::new();
        for binding in bindings.iter() {
            of_policy.entry(&binding.policy).or_default().push(Arc::clone(binding));
        }
        let hook = |policy: &Arc<Policy<E>>| {
            let bindings = of_policy.remove(policy.name.as_str())?;
            Some(Hook { policy: Arc::clone(policy), bindings })
        };
        let hooks: Arc<[Hook<E>]> = policies.iter().filter_map(hook).collect();
        self.joined.store(Arc::new(Joined {
            policies,
            bindings: Arc::clone(&bindings),
            hooks: Arc::clone(&hooks),
        }));
        hooks
    }
}
