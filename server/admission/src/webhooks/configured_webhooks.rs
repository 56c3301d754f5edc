//! All webhooks of one kind of configuration object, and the users as which they are called.

use std::sync::Arc;

use portico_registry::{Objects, Result, WebhookUsers};

use super::configuration::{self, Webhook};
use super::explain::{ExplainedWebhook, explain};
use crate::derived_cache::{DerivedCache, DerivedSet};
use crate::matching::{Constraints, HasConstraints, HookSource};
use crate::write_target::WriteTarget;

/// All webhooks of one kind of configuration object.
pub(crate) struct ConfiguredWebhooks {
    webhooks: DerivedCache<Vec<Arc<Webhook>>>,
    pub(super) users: WebhookUsers,
    /// True if answers may change the object.
    mutates: bool,
}

impl ConfiguredWebhooks {
    /// Creates the source of webhooks in MutatingWebhookConfigurations, which are called anonymously.
    pub(crate) fn mutating() -> Self {
        Self::new("mutatingwebhookconfigurations", true)
    }

    /// Creates the source of webhooks in ValidatingWebhookConfigurations, which are called anonymously.
    pub(crate) fn validating() -> Self {
        Self::new("validatingwebhookconfigurations", false)
    }

    fn new(resource: &str, mutates: bool) -> Self {
        let webhooks = DerivedCache::new("admissionregistration.k8s.io", resource, configuration::read);
        Self { webhooks, users: WebhookUsers::default(), mutates }
    }

    /// Sets the users as which the webhooks are called.
    pub(crate) fn call_as(&mut self, users: WebhookUsers) {
        self.users = users;
    }

    /// Returns the webhooks whose rules match a write, in order.
    ///
    /// # Errors
    /// The configurations cannot be read.
    pub(crate) async fn explain(
        &self,
        objects: &Objects,
        write_target: WriteTarget<'_>,
    ) -> Result<Vec<ExplainedWebhook>> {
        let all = self.load(objects).await?;
        Ok(explain(objects, Self::items(&all), (self.mutates, &self.users), write_target))
    }
}

impl HookSource for ConfiguredWebhooks {
    type Item = Webhook;
    type HookSet = Arc<DerivedSet<Vec<Arc<Webhook>>>>;

    fn cached(&self, objects: &Objects) -> Option<Self::HookSet> {
        self.webhooks.cached(objects)
    }

    async fn load(&self, objects: &Objects) -> Result<Self::HookSet> {
        self.webhooks.load(objects).await
    }

    fn items(all: &Self::HookSet) -> impl Iterator<Item = &Arc<Webhook>> {
        all.iter().flat_map(|of_one| of_one.iter())
    }

    fn problem(all: &Self::HookSet) -> Option<&str> {
        all.problem()
    }
}

impl HasConstraints for Webhook {
    fn constraints(&self) -> &Constraints {
        &self.constraints
    }
}
