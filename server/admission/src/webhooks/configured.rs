//! All webhooks of one kind of configuration object, and the users as which they are called.

use std::sync::Arc;

use portico_registry::{Objects, Result, WebhookUsers};

use super::configuration::{self, Webhook};
use super::explain::{Explained, explain};
use crate::derived::{Derived, DerivedSet};
use crate::matching::{Configured, Constrained, Constraints};
use crate::write_target::WriteTarget;

/// All webhooks of one kind of configuration object.
pub(crate) struct ConfiguredWebhooks {
    derived: Derived<Vec<Arc<Webhook>>>,
    pub(super) users: WebhookUsers,
    /// True if answers may change the object.
    mutate: bool,
}

impl ConfiguredWebhooks {
    /// Creates the source of webhooks in MutatingWebhookConfigurations, which are called anonymously.
    pub(crate) fn mutating() -> Self {
        Self::of("mutatingwebhookconfigurations", true)
    }

    /// Creates the source of webhooks in ValidatingWebhookConfigurations, which are called anonymously.
    pub(crate) fn validating() -> Self {
        Self::of("validatingwebhookconfigurations", false)
    }

    fn of(resource: &str, mutate: bool) -> Self {
        let derived = Derived::new("admissionregistration.k8s.io", resource, configuration::read);
        Self { derived, users: WebhookUsers::default(), mutate }
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
        written: WriteTarget<'_>,
    ) -> Result<Vec<Explained>> {
        let all = self.read(objects).await?;
        Ok(explain(objects, Self::items(&all), (self.mutate, &self.users), written))
    }
}

impl Configured for ConfiguredWebhooks {
    type Item = Webhook;
    type All = Arc<DerivedSet<Vec<Arc<Webhook>>>>;

    fn known(&self, objects: &Objects) -> Option<Self::All> {
        self.derived.known(objects)
    }

    async fn read(&self, objects: &Objects) -> Result<Self::All> {
        self.derived.all(objects).await
    }

    fn items(all: &Self::All) -> impl Iterator<Item = &Arc<Webhook>> {
        all.iter().flat_map(|of_one| of_one.iter())
    }

    fn problem(all: &Self::All) -> Option<&str> {
        all.problem()
    }
}

impl Constrained for Webhook {
    fn constraints(&self) -> &Constraints {
        &self.constraints
    }
}
