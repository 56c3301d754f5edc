//! Policies joined with their bindings. The join is repeated when one of them changes.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use portico_machinery::Object;
use portico_registry::{Objects, Result};

use super::binding::Binding;
use super::policy::Policy;
use crate::derived::{Derived, DerivedSet};
use crate::matching::{Configured, Constrained, Constraints};

const GROUP: &str = "admissionregistration.k8s.io";

/// Policy with its bindings, sorted by name.
pub(crate) struct Hook<E> {
    pub(super) policy: Arc<Policy<E>>,
    pub(super) bindings: Vec<Arc<Binding>>,
}

/// All policies of one kind that have bindings.
pub(crate) struct Hooks<E> {
    policies: Derived<Policy<E>>,
    bindings: Derived<Binding>,
    joined: ArcSwap<Joined<E>>,
}

/// Policies and bindings, and the hooks that result from joining them.
pub(crate) struct Joined<E> {
    policies: Arc<DerivedSet<Policy<E>>>,
    bindings: Arc<DerivedSet<Binding>>,
    hooks: Box<[Arc<Hook<E>>]>,
}

impl<E> Hooks<E> {
    /// Reads policies and bindings from these resources; `compile` compiles the object of a policy.
    pub(super) fn new(
        policies: &str,
        bindings: &str,
        compile: impl Fn(&Object) -> Policy<E> + Send + Sync + 'static,
    ) -> Self {
        let none = Joined { policies: Arc::default(), bindings: Arc::default(), hooks: Box::default() };
        Self {
            policies: Derived::new(GROUP, policies, compile),
            bindings: Derived::new(GROUP, bindings, Binding::read),
            joined: ArcSwap::from_pointee(none),
        }
    }

    fn join(
        &self,
        policies: Arc<DerivedSet<Policy<E>>>,
        bindings: Arc<DerivedSet<Binding>>,
    ) -> Arc<Joined<E>> {
        let joined = self.joined.load_full();
        if Arc::ptr_eq(&joined.policies, &policies) && Arc::ptr_eq(&joined.bindings, &bindings) {
            return joined;
        }
        let mut of_policy: HashMap<&str, Vec<Arc<Binding>>> = HashMap::new();
        for binding in bindings.iter() {
            of_policy.entry(&binding.policy).or_default().push(Arc::clone(binding));
        }
        let hook = |policy: &Arc<Policy<E>>| {
            let bindings = of_policy.remove(policy.name.as_str())?;
            Some(Arc::new(Hook { policy: Arc::clone(policy), bindings }))
        };
        let hooks = policies.iter().filter_map(hook).collect();
        let joined = Arc::new(Joined { policies, bindings: Arc::clone(&bindings), hooks });
        self.joined.store(Arc::clone(&joined));
        joined
    }
}

impl<E: Send + Sync + 'static> Configured for Hooks<E> {
    type Item = Hook<E>;
    type All = Arc<Joined<E>>;

    fn known(&self, objects: &Objects) -> Option<Self::All> {
        Some(self.join(self.policies.known(objects)?, self.bindings.known(objects)?))
    }

    async fn read(&self, objects: &Objects) -> Result<Self::All> {
        let (policies, bindings) = (self.policies.all(objects).await?, self.bindings.all(objects).await?);
        Ok(self.join(policies, bindings))
    }

    fn items(all: &Self::All) -> impl Iterator<Item = &Arc<Hook<E>>> {
        all.hooks.iter()
    }

    fn problem(all: &Self::All) -> Option<&str> {
        all.policies.problem().or(all.bindings.problem())
    }
}

impl<E> Constrained for Hook<E> {
    fn constraints(&self) -> &Constraints {
        &self.policy.constraints
    }
}
