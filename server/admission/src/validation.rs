//! The second half of admission: plugins, policies and webhooks that accept or refuse what is valid.

use std::sync::Arc;
use std::time::Instant;

use portico_machinery::Object;
use portico_registry::{Attributes, Objects, Result, WebhookUsers};

use crate::index::Index;
use crate::loaded::Loaded;
use crate::matching::{MatchTarget, Pair};
use crate::metrics::Metrics;
use crate::plugin::{DeleteRequest, Plugin, ValidationRequest};
use crate::plugins::{VALIDATING_POLICY, VALIDATING_WEBHOOK};
use crate::policies::ValidatingPolicies;
use crate::steps::Step;
use crate::webhooks::{Explained, ValidatingWebhooks, Written};

/// What may refuse a request, in order.
pub(crate) struct ValidatingSteps {
    plugins: Index,
    policies: Option<ValidatingPolicies>,
    webhooks: Option<ValidatingWebhooks>,
    metrics: Arc<Metrics>,
    /// What expressions may cost together.
    expression_cost_limit: u64,
}

impl ValidatingSteps {
    pub(crate) fn new(loaded: &Loaded, metrics: Arc<Metrics>, expression_cost_limit: u64) -> Self {
        Self {
            plugins: loaded.index(|row| row.phases.validates),
            policies: loaded.has(VALIDATING_POLICY).then(|| ValidatingPolicies::new(Arc::clone(&metrics))),
            webhooks: loaded.has(VALIDATING_WEBHOOK).then(ValidatingWebhooks::default),
            metrics,
            expression_cost_limit,
        }
    }

    /// Has webhooks called as these users.
    pub(crate) fn call_webhooks_as(&mut self, users: WebhookUsers) {
        if let Some(webhooks) = &mut self.webhooks {
            webhooks.call_as(users);
        }
    }

    /// The webhooks that a write would meet, in order.
    pub(crate) async fn explain(&self, objects: &Objects, written: Written<'_>) -> Result<Vec<Explained>> {
        match &self.webhooks {
            Some(webhooks) => webhooks.explain(objects, written).await,
            None => Ok(Vec::new()),
        }
    }

    /// The steps that are concerned by a request; nothing where none is.
    pub(crate) fn concerned<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a Object>,
        old: Option<&'a Object>,
    ) -> Option<Validation<'a>> {
        let (mut policies, mut webhooks) = (self.policies.as_ref(), self.webhooks.as_ref());
        policies = policies.filter(|all| all.any(objects));
        webhooks = webhooks.filter(|all| all.any(objects));
        let target = MatchTarget::if_any(
            policies.is_some() || webhooks.is_some(),
            attributes,
            self.expression_cost_limit,
        );
        policies = policies.filter(|all| target.as_ref().is_some_and(|target| all.concern(objects, target)));
        webhooks = webhooks.filter(|all| target.as_ref().is_some_and(|target| all.concern(objects, target)));
        let configured = policies.is_some() || webhooks.is_some();
        let concerned = configured || self.plugins.concerns(&attributes);
        concerned.then_some(Validation {
            steps: self,
            objects,
            attributes,
            target,
            policies,
            webhooks,
            pair: Pair { new, old },
        })
    }
}

/// A request on its way through all steps that may refuse it.
pub(crate) struct Validation<'a> {
    steps: &'a ValidatingSteps,
    objects: &'a Objects,
    attributes: Attributes<'a>,
    /// Nothing where no webhook and no policy may be concerned.
    target: Option<MatchTarget<'a>>,
    policies: Option<&'a ValidatingPolicies>,
    webhooks: Option<&'a ValidatingWebhooks>,
    pair: Pair<'a>,
}

impl Validation<'_> {
    /// All steps; what the caller is warned of.
    ///
    /// # Errors
    /// The first refusal.
    pub(crate) async fn run(&self) -> Result<Vec<String>> {
        let (objects, pair, metrics) = (self.objects, self.pair, &*self.steps.metrics);
        let mut warnings = Vec::new();
        for (name, plugin) in self.steps.plugins.concerned(&self.attributes) {
            extend(&mut warnings, self.counted(name, self.ask(plugin)).await)?;
        }
        if let Some(target) = &self.target {
            if let Some(policies) = self.policies {
                let validated = policies.validate(objects, target, metrics, pair);
                extend(&mut warnings, self.counted(VALIDATING_POLICY, validated).await)?;
            }
            if let Some(webhooks) = self.webhooks {
                let validated = webhooks.validate(objects, target, metrics, pair);
                extend(&mut warnings, self.counted(VALIDATING_WEBHOOK, validated).await)?;
            }
        }
        Ok(warnings)
    }

    /// Measures what a plugin does.
    async fn counted<T>(&self, plugin: &'static str, work: impl Future<Output = Result<T>>) -> Result<T> {
        let begun = Instant::now();
        let outcome = work.await;
        let step = (Step::Validate, self.attributes.operation);
        self.steps.metrics.steps.plugin(plugin, step, outcome.is_err(), begun.elapsed());
        outcome
    }

    async fn ask(&self, plugin: &dyn Plugin) -> Result<Vec<String>> {
        let (attributes, Pair { new, old }) = (self.attributes, self.pair);
        match new {
            Some(new) => plugin.validate(self.objects, ValidationRequest { attributes, new, old }).await,
            None => plugin.validate_delete(self.objects, DeleteRequest { attributes, old }).await,
        }
    }
}

/// Adds warnings, or adds those there are to a refusal.
fn extend(warnings: &mut Vec<String>, validated: Result<Vec<String>>) -> Result<()> {
    match validated {
        Ok(further) => warnings.extend(further),
        Err(status) => return Err(status.with_warnings(std::mem::take(warnings))),
    }
    Ok(())
}
