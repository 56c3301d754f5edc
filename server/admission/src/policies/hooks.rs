//! Policies joined with their bindings. The join is repeated when one of them changes.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use portico_machinery::Object;
use portico_registry::{Objects, Result};

use super::binding::Binding;
use super::policy::Policy;
use crate::derived_cache::{DerivedCache, DerivedSet};
use crate::matching::{Constraints, HasConstraints, HookSource};

const GROUP: &str = "admissionregistration.k8s.io";

/// Policy with its bindings, sorted by name.
pub(crate) struct Hook<E> {
    pub(super) policy: Arc<Policy<E>>,
    pub(super) bindings: Vec<Arc<Binding>>,
}

/// All policies of one kind that have bindings.
pub(crate) struct Hooks<E> {
    policies: DerivedCache<Policy<E>>,
    bindings: DerivedCache<Binding>,
    joined: ArcSwap<JoinedPolicies<E>>,
}

/// Policies and bindings, and the hooks that result from joining them.
pub(crate) struct JoinedPolicies<E> {
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
        let none =
            JoinedPolicies { policies: Arc::default(), bindings: Arc::default(), hooks: Box::default() };
        Self {
            policies: DerivedCache::new(GROUP, policies, compile),
            bindings: DerivedCache::new(GROUP, bindings, Binding::read),
            joined: ArcSwap::from_pointee(none),
        }
    }

    fn join(
        &self,
        policies: Arc<DerivedSet<Policy<E>>>,
        bindings: Arc<DerivedSet<Binding>>,
    ) -> Arc<JoinedPolicies<E>> {
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
        let joined = Arc::new(JoinedPolicies { policies, bindings: Arc::clone(&bindings), hooks });
        self.joined.store(Arc::clone(&joined));
        joined
    }
}

impl<E: Send + Sync + 'static> HookSource for Hooks<E> {
    type Item = Hook<E>;
    type HookSet = Arc<JoinedPolicies<E>>;

    fn cached(&self, objects: &Objects) -> Option<Self::HookSet> {
        Some(self.join(self.policies.cached(objects)?, self.bindings.cached(objects)?))
    }

    async fn load(&self, objects: &Objects) -> Result<Self::HookSet> {
        let (policies, bindings) = (self.policies.load(objects).await?, self.bindings.load(objects).await?);
        Ok(self.join(policies, bindings))
    }

    fn items(all: &Self::HookSet) -> impl Iterator<Item = &Arc<Hook<E>>> {
        all.hooks.iter()
    }

    fn problem(all: &Self::HookSet) -> Option<&str> {
        all.policies.problem().or(all.bindings.problem())
    }
}

impl<E> HasConstraints for Hook<E> {
    fn constraints(&self) -> &Constraints {
        &self.policy.constraints
    }
}
