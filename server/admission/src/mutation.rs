//! Mutating admission: plugins, policies and webhooks that may change an object, and a second round if one of them requires it
//! (upstream's `reinvoker`).

use std::sync::Arc;
use std::time::Instant;

use portico_machinery::{Node, Object};
use portico_registry::{Attributes, Objects, Result};
use portico_schema::managed::ManagedFields;

use crate::index::PluginIndex;
use crate::loaded_plugins::LoadedPlugins;
use crate::matching::{LazyTarget, RuleMatch, RuleMatches};
use crate::metrics::Metrics;
use crate::plugin::{DeleteRequest, MutationRequest};
use crate::plugins::{MUTATING_POLICY, MUTATING_WEBHOOK, is_last};
use crate::policies::{Hook, Hooks, MutatingHook, PolicyRound, is_excluded, mutate};
use crate::rounds::{Reinvocation, Rounds};
use crate::step_metrics::Step;
use crate::webhooks::{ConfiguredWebhooks, Webhook, WebhookRound};

const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

/// Steps that may change a request, in order.
pub(crate) struct MutatingSteps {
    plugins: PluginIndex,
    pub(crate) policies: Option<Hooks<MutatingHook>>,
    /// Mutating webhooks.
    pub(crate) webhooks: Option<ConfiguredWebhooks>,
    /// Plugins that run after policies and webhooks.
    final_plugins: PluginIndex,
    metrics: Arc<Metrics>,
    /// Cost budget of all expressions of a request.
    expression_cost_limit: u64,
}

impl MutatingSteps {
    pub(crate) fn new(loaded: &LoadedPlugins, metrics: Arc<Metrics>, expression_cost_limit: u64) -> Self {
        Self {
            plugins: loaded.index(|row| row.phases.mutates && !is_last(row.name)),
            policies: loaded.has(MUTATING_POLICY).then(|| Hooks::mutating(Arc::clone(&metrics))),
            webhooks: loaded.has(MUTATING_WEBHOOK).then(ConfiguredWebhooks::mutating),
            final_plugins: loaded.index(|row| row.phases.mutates && is_last(row.name)),
            metrics,
            expression_cost_limit,
        }
    }

    /// Prepares the steps that match a request; `None` if there are none. Policies apply only to requests that write an object.
    pub(crate) fn prepare<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        writes_object: bool,
        old: Option<&'a Object>,
    ) -> Option<Mutation<'a>> {
        let target = LazyTarget::new(attributes, self.expression_cost_limit);
        let policies =
            self.policies.as_ref().filter(|_| writes_object && !is_excluded(attributes.served_resource));
        let policies = policies.and_then(|all| RuleMatches::find(all, objects, &target));
        let webhooks = self.webhooks.as_ref().and_then(|all| RuleMatches::find(all, objects, &target));
        let configured = policies.is_some() || webhooks.is_some();
        let has_steps = configured
            || self.plugins.has_matching(&attributes)
            || self.final_plugins.has_matching(&attributes);
        has_steps.then_some(Mutation { steps: self, objects, attributes, target, policies, webhooks, old })
    }
}

/// Request in mutating admission.
pub(crate) struct Mutation<'a> {
    steps: &'a MutatingSteps,
    objects: &'a Objects,
    attributes: Attributes<'a>,
    target: LazyTarget<'a>,
    policies: Option<RuleMatches<'a, Hooks<MutatingHook>>>,
    webhooks: Option<RuleMatches<'a, ConfiguredWebhooks>>,
    old: Option<&'a Object>,
}

/// Restores the managed fields of an object if policies or webhooks made them invalid, and returns a warning (upstream's
/// `managedFieldsValidatingAdmissionController`).
fn reset_invalid_managers(new: &mut Object, tracked: Option<Node>) -> Option<String> {
    let error = ManagedFields::read(new).err()?;
    match tracked {
        Some(tracked) => new.put(&MANAGED_FIELDS, tracked),
        None => drop(new.remove(&MANAGED_FIELDS)),
    }
    Some(format!(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: {error}"
    ))
}

/// Policies and webhooks that match the request.
#[derive(Default)]
struct MatchedHooks<'a> {
    policies: Vec<RuleMatch<Hook<MutatingHook>>>,
    webhooks: Option<(&'a ConfiguredWebhooks, Vec<RuleMatch<Webhook>>)>,
}

impl MatchedHooks<'_> {
    fn is_empty(&self) -> bool {
        self.policies.is_empty() && self.webhooks.as_ref().is_none_or(|(_, webhooks)| webhooks.is_empty())
    }
}

impl<'a> Mutation<'a> {
    /// Runs all rounds; returns the warnings for the caller.
    ///
    /// # Errors
    /// The first refusal.
    pub(crate) async fn run(mut self, mut new: Option<&mut Object>) -> Result<Vec<String>> {
        let matching = self.match_hooks().await?;
        let tracked =
            new.as_deref().filter(|_| !matching.is_empty()).map(|new| new.at(&MANAGED_FIELDS).node());
        let mut rounds = Rounds::default();
        let (mut reinvocations, mut warnings) = (Reinvocations::default(), Vec::new());
        loop {
            let round = self
                .round(&matching, new.as_deref_mut(), &mut rounds, &mut reinvocations, &mut warnings)
                .await;
            if let Err(status) = round {
                return Err(status.with_warnings(warnings));
            }
            if !rounds.advance() {
                if let (Some(tracked), Some(new)) = (tracked, new) {
                    warnings.extend(reset_invalid_managers(new, tracked));
                }
                return Ok(warnings);
            }
        }
    }

    /// Matches policies and webhooks with the request. The result is used in all rounds.
    async fn match_hooks(&mut self) -> Result<MatchedHooks<'a>> {
        let (policies, webhooks) = (self.policies.take(), self.webhooks.take());
        let Some(target) = self.target.get() else { return Ok(MatchedHooks::default()) };
        let mut matching = MatchedHooks::default();
        if let Some(policies) = policies {
            matching.policies = policies.matches(self.objects, target).await?;
        }
        if let Some(webhooks) = webhooks {
            matching.webhooks = Some((webhooks.source, webhooks.matches(self.objects, target).await?));
        }
        Ok(matching)
    }

    async fn round(
        &self,
        matching: &MatchedHooks<'_>,
        mut new: Option<&mut Object>,
        rounds: &mut Rounds,
        reinvocations: &mut Reinvocations,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        self.run_plugins(&self.steps.plugins, new.as_deref_mut()).await?;
        if let Some(target) = self.target.get_if_described() {
            let (objects, metrics) = (self.objects, &*self.steps.metrics);
            if let (false, Some(new)) = (matching.policies.is_empty(), new.as_deref_mut()) {
                let reinvocation = &mut reinvocations.policies;
                let round = PolicyRound { objects, target, metrics, rounds: &mut *rounds, reinvocation };
                let mutated = mutate(round, &matching.policies, new, self.old);
                self.measure(MUTATING_POLICY, mutated).await?;
            }
            if let Some((webhooks, matches)) = &matching.webhooks {
                let reinvocation = &mut reinvocations.webhooks;
                let round = WebhookRound { objects, target, metrics, rounds, reinvocation, warnings };
                let mutated = webhooks.mutate(round, matches, new.as_deref_mut(), self.old);
                self.measure(MUTATING_WEBHOOK, mutated).await?;
            }
        }
        self.run_plugins(&self.steps.final_plugins, new).await
    }

    /// Measures the duration of a plugin.
    async fn measure(&self, plugin: &'static str, work: impl Future<Output = Result<()>>) -> Result<()> {
        let started = Instant::now();
        let outcome = work.await;
        let step = (Step::Admit, self.attributes.operation);
        self.steps.metrics.steps.observe_plugin(plugin, step, outcome.is_err(), started.elapsed());
        outcome
    }

    /// Runs those of the plugins that handle the request, in order.
    async fn run_plugins(&self, plugins: &PluginIndex, mut new: Option<&mut Object>) -> Result<()> {
        let Self { objects, attributes, old, .. } = self;
        for (name, plugin) in plugins.matching(attributes) {
            match new.as_deref_mut() {
                Some(new) => {
                    let request = MutationRequest { attributes: *attributes, new, old: *old };
                    self.measure(name, plugin.mutate(objects, request)).await?;
                }
                None => {
                    let request = DeleteRequest { attributes: *attributes, old: *old };
                    self.measure(name, plugin.admit_delete(objects, request)).await?;
                }
            }
        }
        Ok(())
    }
}

/// Reinvocation state of policies and of webhooks.
#[derive(Default)]
struct Reinvocations {
    policies: Reinvocation,
    webhooks: Reinvocation,
}
