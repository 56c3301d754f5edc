//! The first half of admission: plugins, policies and webhooks that may change what is written, once more where one of them
//! wants it (upstream's `reinvoker`).

use std::sync::Arc;
use std::time::Instant;

use portico_machinery::Object;
use portico_registry::{Attributes, Objects, Result, WebhookUsers};

use crate::index::Index;
use crate::loaded::Loaded;
use crate::matching::MatchTarget;
use crate::metrics::Metrics;
use crate::plugin::{DeleteRequest, MutationRequest};
use crate::plugins::{MUTATING_POLICY, MUTATING_WEBHOOK, is_last};
use crate::policies::{MutatingPolicies, PolicyRound};
use crate::rounds::{Reinvocation, Rounds};
use crate::steps::Step;
use crate::webhooks::{Explained, MutatingWebhooks, Round, Written};

/// What may change a request, in order.
pub(crate) struct MutatingSteps {
    plugins: Index,
    policies: Option<MutatingPolicies>,
    webhooks: Option<MutatingWebhooks>,
    /// Plugins behind policies and webhooks.
    last: Index,
    metrics: Arc<Metrics>,
    /// What expressions may cost together.
    expression_cost_limit: u64,
}

impl MutatingSteps {
    pub(crate) fn new(loaded: &Loaded, metrics: Arc<Metrics>, expression_cost_limit: u64) -> Self {
        Self {
            plugins: loaded.index(|row| row.phases.mutates && !is_last(row.name)),
            policies: loaded.has(MUTATING_POLICY).then(|| MutatingPolicies::new(Arc::clone(&metrics))),
            webhooks: loaded.has(MUTATING_WEBHOOK).then(MutatingWebhooks::default),
            last: loaded.index(|row| row.phases.mutates && is_last(row.name)),
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

    /// The steps that are concerned by a request; nothing where none is. Policies look at requests that write something.
    pub(crate) fn concerned<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        writes: bool,
        old: Option<&'a Object>,
    ) -> Option<Mutation<'a>> {
        let (mut policies, mut webhooks) = (self.policies.as_ref(), self.webhooks.as_ref());
        policies = policies.filter(|all| writes && all.any(objects));
        webhooks = webhooks.filter(|all| all.any(objects));
        let target = MatchTarget::if_any(
            policies.is_some() || webhooks.is_some(),
            attributes,
            self.expression_cost_limit,
        );
        policies = policies.filter(|all| target.as_ref().is_some_and(|target| all.concern(objects, target)));
        webhooks = webhooks.filter(|all| target.as_ref().is_some_and(|target| all.concern(objects, target)));
        let configured = policies.is_some() || webhooks.is_some();
        let concerned = configured || self.plugins.concerns(&attributes) || self.last.concerns(&attributes);
        concerned.then_some(Mutation { steps: self, objects, attributes, target, policies, webhooks, old })
    }
}

/// A request on its way through all steps that may change it.
pub(crate) struct Mutation<'a> {
    steps: &'a MutatingSteps,
    objects: &'a Objects,
    attributes: Attributes<'a>,
    /// Nothing where no webhook and no policy may be concerned.
    target: Option<MatchTarget<'a>>,
    policies: Option<&'a MutatingPolicies>,
    webhooks: Option<&'a MutatingWebhooks>,
    old: Option<&'a Object>,
}

impl Mutation<'_> {
    /// All rounds; what the caller is warned of.
    ///
    /// # Errors
    /// The first refusal.
    pub(crate) async fn run(&self, mut new: Option<&mut Object>) -> Result<Vec<String>> {
        let mut rounds = Rounds::default();
        let (mut again, mut warnings) = (Again::default(), Vec::new());
        loop {
            let round = self.round(new.as_deref_mut(), &mut rounds, &mut again, &mut warnings).await;
            if let Err(status) = round {
                return Err(status.with_warnings(warnings));
            }
            if !rounds.go_on() {
                return Ok(warnings);
            }
        }
    }

    async fn round(
        &self,
        mut new: Option<&mut Object>,
        rounds: &mut Rounds,
        again: &mut Again,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        self.ask(&self.steps.plugins, new.as_deref_mut()).await?;
        if let Some(target) = &self.target {
            let (objects, metrics) = (self.objects, &*self.steps.metrics);
            if let (Some(policies), Some(new)) = (self.policies, new.as_deref_mut()) {
                let reinvocation = &mut again.policies;
                let round = PolicyRound { objects, target, metrics, rounds: &mut *rounds, reinvocation };
                self.counted(MUTATING_POLICY, policies.mutate(round, new, self.old)).await?;
            }
            if let Some(webhooks) = self.webhooks {
                let reinvocation = &mut again.webhooks;
                let round = Round { objects, target, metrics, rounds, reinvocation, warnings };
                self.counted(MUTATING_WEBHOOK, webhooks.mutate(round, new.as_deref_mut(), self.old)).await?;
            }
        }
        self.ask(&self.steps.last, new).await
    }

    /// Measures what a plugin does.
    async fn counted(&self, plugin: &'static str, work: impl Future<Output = Result<()>>) -> Result<()> {
        let begun = Instant::now();
        let outcome = work.await;
        let step = (Step::Admit, self.attributes.operation);
        self.steps.metrics.steps.plugin(plugin, step, outcome.is_err(), begun.elapsed());
        outcome
    }

    /// Asks those of these plugins that look at the request, in order.
    async fn ask(&self, plugins: &Index, mut new: Option<&mut Object>) -> Result<()> {
        let Self { objects, attributes, old, .. } = self;
        for (name, plugin) in plugins.concerned(attributes) {
            match new.as_deref_mut() {
                Some(new) => {
                    let request = MutationRequest { attributes: *attributes, new, old: *old };
                    self.counted(name, plugin.mutate(objects, request)).await?;
                }
                None => {
                    let request = DeleteRequest { attributes: *attributes, old: *old };
                    self.counted(name, plugin.admit_delete(objects, request)).await?;
                }
            }
        }
        Ok(())
    }
}

/// Who is asked again in the second round.
#[derive(Default)]
struct Again {
    policies: Reinvocation,
    webhooks: Reinvocation,
}
