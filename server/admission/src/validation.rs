//! Validating admission: plugins, policies and webhooks that accept or refuse valid objects.

use std::sync::Arc;
use std::time::Instant;

use portico_machinery::Object;
use portico_policy::ValidatingPolicy;
use portico_registry::{Attributes, Objects, Result};

use crate::index::PluginIndex;
use crate::loaded_plugins::LoadedPlugins;
use crate::matching::{LazyTarget, ObjectPair, RuleMatches};
use crate::metrics::Metrics;
use crate::plugin::{DeleteRequest, Plugin, ValidationRequest};
use crate::plugins::{VALIDATING_POLICY, VALIDATING_WEBHOOK};
use crate::policies::{Hooks, is_excluded, validate};
use crate::step_metrics::Step;
use crate::webhooks::ConfiguredWebhooks;

/// Steps that may refuse a request, in order.
pub(crate) struct ValidatingSteps {
    plugins: PluginIndex,
    pub(crate) policies: Option<Hooks<ValidatingPolicy>>,
    /// Validating webhooks.
    pub(crate) webhooks: Option<ConfiguredWebhooks>,
    metrics: Arc<Metrics>,
    /// Cost budget of all expressions of a request.
    expression_cost_limit: u64,
}

impl ValidatingSteps {
    pub(crate) fn new(loaded: &LoadedPlugins, metrics: Arc<Metrics>, expression_cost_limit: u64) -> Self {
        Self {
            plugins: loaded.index(|row| row.phases.validates),
            policies: loaded.has(VALIDATING_POLICY).then(|| Hooks::validating(Arc::clone(&metrics))),
            webhooks: loaded.has(VALIDATING_WEBHOOK).then(ConfiguredWebhooks::validating),
            metrics,
            expression_cost_limit,
        }
    }

    /// Prepares the steps that match a request; `None` if there are none.
    pub(crate) fn prepare<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a Object>,
        old: Option<&'a Object>,
    ) -> Option<Validation<'a>> {
        let target = LazyTarget::new(attributes, self.expression_cost_limit);
        let policies = self.policies.as_ref().filter(|_| !is_excluded(attributes.served_resource));
        let policies = policies.and_then(|all| RuleMatches::find(all, objects, &target));
        let webhooks = self.webhooks.as_ref().and_then(|all| RuleMatches::find(all, objects, &target));
        let configured = policies.is_some() || webhooks.is_some();
        let has_steps = configured || self.plugins.has_matching(&attributes);
        let pair = ObjectPair { new, old };
        has_steps.then_some(Validation { steps: self, objects, attributes, target, policies, webhooks, pair })
    }
}

/// Request in validating admission.
pub(crate) struct Validation<'a> {
    steps: &'a ValidatingSteps,
    objects: &'a Objects,
    attributes: Attributes<'a>,
    target: LazyTarget<'a>,
    policies: Option<RuleMatches<'a, Hooks<ValidatingPolicy>>>,
    webhooks: Option<RuleMatches<'a, ConfiguredWebhooks>>,
    pair: ObjectPair<'a>,
}

impl Validation<'_> {
    /// Runs all steps; returns the warnings for the caller.
    ///
    /// # Errors
    /// The first refusal.
    pub(crate) async fn run(mut self) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        for (name, plugin) in self.steps.plugins.matching(&self.attributes) {
            collect_warnings(&mut warnings, self.measure(name, self.run_plugin(plugin)).await)?;
        }
        let (policies, webhooks) = (self.policies.take(), self.webhooks.take());
        if let Some(policies) = policies {
            collect_warnings(&mut warnings, self.measure(VALIDATING_POLICY, self.evaluate(policies)).await)?;
        }
        if let Some(webhooks) = webhooks {
            collect_warnings(&mut warnings, self.measure(VALIDATING_WEBHOOK, self.call(webhooks)).await)?;
        }
        Ok(warnings)
    }

    async fn evaluate(&self, policies: RuleMatches<'_, Hooks<ValidatingPolicy>>) -> Result<Vec<String>> {
        let Some(target) = self.target.get() else { return Ok(Vec::new()) };
        let matches = policies.matches(self.objects, target).await?;
        validate(&matches, self.objects, target, &self.steps.metrics, self.pair).await
    }

    async fn call(&self, webhooks: RuleMatches<'_, ConfiguredWebhooks>) -> Result<Vec<String>> {
        let Some(target) = self.target.get() else { return Ok(Vec::new()) };
        let configured = webhooks.source;
        let matches = webhooks.matches(self.objects, target).await?;
        configured.validate(&matches, self.objects, target, &self.steps.metrics, self.pair).await
    }

    /// Measures the duration of a plugin.
    async fn measure<T>(&self, plugin: &'static str, work: impl Future<Output = Result<T>>) -> Result<T> {
        let started = Instant::now();
        let outcome = work.await;
        let step = (Step::Validate, self.attributes.operation);
        self.steps.metrics.steps.observe_plugin(plugin, step, outcome.is_err(), started.elapsed());
        outcome
    }

    async fn run_plugin(&self, plugin: &dyn Plugin) -> Result<Vec<String>> {
        let (attributes, ObjectPair { new, old }) = (self.attributes, self.pair);
        match new {
            Some(new) => plugin.validate(self.objects, ValidationRequest { attributes, new, old }).await,
            None => plugin.validate_delete(self.objects, DeleteRequest { attributes, old }).await,
        }
    }
}

/// Adds the warnings of a step, or adds the earlier warnings to its refusal.
fn collect_warnings(warnings: &mut Vec<String>, validated: Result<Vec<String>>) -> Result<()> {
    match validated {
        Ok(more) => warnings.extend(more),
        Err(status) => return Err(status.with_warnings(std::mem::take(warnings))),
    }
    Ok(())
}
