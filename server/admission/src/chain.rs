//! The admission chain: all plugins in upstream's order, policies, webhooks, and quotas within the transaction.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portico_kit::metrics::Registry;
use portico_machinery::request_info::RequestInfo;
use portico_machinery::{GroupVersionResource, Object};
use portico_registry::{
    Admission, Attributes, NamespaceRules, Objects, QuotaCommit, Result, ResultFuture, WebhookUsers, Write,
};
use portico_store::{Operation, Txn};

use crate::loaded_plugins::LoadedPlugins;
use crate::matching::HookSource;
use crate::metrics::Metrics;
use crate::mutation::MutatingSteps;
use crate::plugins::{NAMESPACE_AUTO_PROVISION, NAMESPACE_LIFECYCLE, RESOURCE_QUOTA};
use crate::policies::ExplainedPolicy;
use crate::resource_quota::{LimitedResource, QuotaAdmission, SharedTransactions};
use crate::settings::AdmissionSettings;
use crate::step_metrics::Step;
use crate::validation::ValidatingSteps;
use crate::webhooks::ExplainedWebhook;
use crate::write_target::WriteTarget;

/// Enabled plugins, policies, webhooks and quotas.
pub struct AdmissionChain {
    mutating: MutatingSteps,
    validating: ValidatingSteps,
    namespaces: NamespaceRules,
    metrics: Arc<Metrics>,
    /// `None` if ResourceQuota is disabled.
    shared_transactions: Option<SharedTransactions>,
    /// Resources that require a covering quota.
    limited_resources: Vec<LimitedResource>,
}

/// Policies and webhooks that a write would be subject to: mutating ones first, then validating ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// Policies with their bindings.
    pub policies: Vec<ExplainedPolicy>,
    pub webhooks: Vec<ExplainedWebhook>,
}

impl AdmissionChain {
    /// Creates the chain of the enabled plugins and logs their names, as upstream does.
    #[must_use]
    pub fn new(settings: &AdmissionSettings, metrics: &Registry) -> Self {
        let (loaded, metrics) = (LoadedPlugins::new(settings, metrics), Arc::new(Metrics::new(metrics)));
        loaded.log();
        Self {
            mutating: MutatingSteps::new(&loaded, Arc::clone(&metrics), settings.expression_cost_limit),
            namespaces: NamespaceRules {
                lifecycle: loaded.has(NAMESPACE_LIFECYCLE),
                provision: loaded.has(NAMESPACE_AUTO_PROVISION),
            },
            validating: ValidatingSteps::new(&loaded, Arc::clone(&metrics), settings.expression_cost_limit),
            metrics,
            shared_transactions: loaded.has(RESOURCE_QUOTA).then(SharedTransactions::default),
            limited_resources: settings.configuration.limited_resources().to_vec(),
        }
    }

    /// Sets the users as which mutating and validating webhooks are called.
    #[must_use]
    pub fn with_webhook_users(mut self, mutating: WebhookUsers, validating: WebhookUsers) -> Self {
        let webhooks = [(&mut self.mutating.webhooks, mutating), (&mut self.validating.webhooks, validating)];
        for (webhooks, users) in webhooks {
            if let Some(webhooks) = webhooks {
                webhooks.call_as(users);
            }
        }
        self
    }

    /// Returns the policies and webhooks whose rules match a write to a path, each in the order of evaluation. The explanation is
    /// empty if the path does not name a served resource.
    ///
    /// # Errors
    /// The configurations cannot be read.
    pub async fn explain(&self, objects: &Objects, path: &RequestInfo) -> Result<Explanation> {
        let resource = GroupVersionResource::new(&path.api_group, &path.api_version, &path.resource);
        let mut explanation = Explanation::default();
        let Some(served) = objects.by_resource(&resource) else { return Ok(explanation) };
        let (subresource, namespace, name) = (&*path.subresource, &*path.namespace, &*path.name);
        let write_target = WriteTarget { served: &served, subresource, namespace, name };
        if let Some(policies) = &self.mutating.policies {
            explanation.policies.extend(policies.explain(objects, write_target).await?);
        }
        if let Some(policies) = &self.validating.policies {
            explanation.policies.extend(policies.explain(objects, write_target).await?);
        }
        for webhooks in [&self.mutating.webhooks, &self.validating.webhooks].into_iter().flatten() {
            explanation.webhooks.extend(webhooks.explain(objects, write_target).await?);
        }
        Ok(explanation)
    }

    /// Checks that all policies, bindings and webhooks can be read.
    ///
    /// # Errors
    /// Names of the unreadable ones: requests that they could match are refused.
    pub async fn check_rules(&self, objects: &Objects) -> std::result::Result<(), String> {
        check_rules(self.mutating.policies.as_ref(), objects).await?;
        check_rules(self.mutating.webhooks.as_ref(), objects).await?;
        check_rules(self.validating.policies.as_ref(), objects).await?;
        check_rules(self.validating.webhooks.as_ref(), objects).await
    }

    fn quotas<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        write: Write<'a>,
    ) -> Option<QuotaAdmission<'a>> {
        let transactions = self.shared_transactions.as_ref()?;
        let is_counted = attributes.served_resource.info.namespaced && !write.new.namespace().is_empty();
        is_counted.then_some(QuotaAdmission {
            objects,
            attributes,
            write,
            transactions,
            limited_resources: &self.limited_resources,
        })
    }
}

async fn check_rules<C: HookSource>(
    configured: Option<&C>,
    objects: &Objects,
) -> std::result::Result<(), String> {
    let Some(configured) = configured else { return Ok(()) };
    let all = configured.load(objects).await.map_err(|status| status.message)?;
    C::problem(&all).map_or(Ok(()), |problem| Err(problem.to_owned()))
}

impl Admission for AdmissionChain {
    fn namespace_rules(&self) -> NamespaceRules {
        self.namespaces
    }

    fn mutate<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a mut Object>,
        old: Option<&'a Object>,
    ) -> Option<ResultFuture<'a, Vec<String>>> {
        let (steps, operation) = (&self.metrics.steps, attributes.operation);
        let Some(mutation) = self.mutating.prepare(objects, attributes, new.is_some(), old) else {
            steps.observe_step(Step::Admit, operation, false, Duration::ZERO);
            return None;
        };
        Some(Box::pin(async move {
            let started = Instant::now();
            let outcome = mutation.run(new).await;
            steps.observe_step(Step::Admit, operation, outcome.is_err(), started.elapsed());
            outcome
        }))
    }

    fn validate<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a Object>,
        old: Option<&'a Object>,
    ) -> Option<ResultFuture<'a, Vec<String>>> {
        let (steps, operation) = (&self.metrics.steps, attributes.operation);
        let Some(validation) = self.validating.prepare(objects, attributes, new, old) else {
            steps.observe_step(Step::Validate, operation, false, Duration::ZERO);
            return None;
        };
        Some(Box::pin(async move {
            let started = Instant::now();
            let outcome = validation.run().await;
            steps.observe_step(Step::Validate, operation, outcome.is_err(), started.elapsed());
            outcome
        }))
    }

    fn check_quota<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        write: Write<'a>,
    ) -> Option<ResultFuture<'a, ()>> {
        let quotas = self.quotas(objects, attributes, write)?;
        Some(Box::pin(async move { quotas.check().await }))
    }

    fn commit<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        write: Write<'a>,
        txn: &'a Txn,
        checks: &'a [Operation],
    ) -> Option<ResultFuture<'a, QuotaCommit>> {
        let quotas = self.quotas(objects, attributes, write)?;
        Some(Box::pin(async move { quotas.commit(txn, checks).await }))
    }
}
