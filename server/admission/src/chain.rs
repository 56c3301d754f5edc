//! The chain: all plugins in upstream's order, then webhooks, then quotas with the transaction.

use portico_kit::metrics::Registry;
use portico_machinery::Object;
use portico_registry::{Admission, Attributes, Charged, Objects, Pending, Result, Write};
use portico_store::{Operation, Txn};

use crate::matching::{MatchTarget, Pair};
use crate::metrics::Metrics;
use crate::plugin::{MutationRequest, Plugin, ValidationRequest};
use crate::policies::{MutatingPolicies, PolicyRound, ValidatingPolicies};
use crate::resource_quota::{self, Quotas, SharedTransactions};
use crate::rounds::{Reinvocation, Rounds};
use crate::webhooks::{MutatingWebhooks, Round, ValidatingWebhooks};
use crate::{
    claim_resize, default_class, in_use_protection, limit_ranger, node_taints, pod_security, priority,
    runtime_class, service_account, tolerations, topology_labels,
};

/// All plugins, in order. ResourceQuota comes behind them, with the transaction.
const PLUGINS: [&dyn Plugin; 12] = [
    &limit_ranger::LimitRanger,
    &service_account::ServiceAccount,
    &node_taints::TaintNodesByCondition,
    &pod_security::PodSecurity,
    &priority::Priority,
    &tolerations::DefaultTolerationSeconds,
    &default_class::STORAGE,
    &in_use_protection::StorageObjectInUseProtection,
    &claim_resize::PersistentVolumeClaimResize,
    &runtime_class::RuntimeClass,
    &default_class::INGRESS,
    &topology_labels::PodTopologyLabels,
];

/// The plugins that are on, webhooks, and quotas.
pub struct AdmissionChain {
    /// Names of plugins that are off (`--disable-admission-plugins`).
    disabled: Vec<String>,
    mutating_policies: MutatingPolicies,
    mutating_webhooks: MutatingWebhooks,
    validating_policies: ValidatingPolicies,
    validating_webhooks: ValidatingWebhooks,
    metrics: Metrics,
    shared_transactions: SharedTransactions,
}

/// What upstream calls webhooks and policies as plugins.
const MUTATING_POLICY: &str = "MutatingAdmissionPolicy";
const VALIDATING_POLICY: &str = "ValidatingAdmissionPolicy";
const MUTATING_WEBHOOK: &str = "MutatingAdmissionWebhook";
const VALIDATING_WEBHOOK: &str = "ValidatingAdmissionWebhook";

impl AdmissionChain {
    /// A chain without these plugins, which are named as upstream names them.
    #[must_use]
    pub fn without(disabled: Vec<String>, metrics: &Registry) -> Self {
        Self {
            disabled,
            mutating_policies: MutatingPolicies::new(),
            mutating_webhooks: MutatingWebhooks::new(),
            validating_policies: ValidatingPolicies::new(),
            validating_webhooks: ValidatingWebhooks::new(),
            metrics: Metrics::new(metrics),
            shared_transactions: SharedTransactions::default(),
        }
    }

    fn is_on(&self, plugin: &str) -> bool {
        !self.disabled.iter().any(|off| off == plugin)
    }

    /// The plugins that look at such a write.
    fn plugins<'a>(
        &'a self,
        attributes: &Attributes<'a>,
    ) -> impl Iterator<Item = &'static dyn Plugin> + use<'a> {
        let resource = &attributes.served.resource;
        let target = (resource.group.as_str(), resource.resource.as_str(), attributes.subresource());
        PLUGINS
            .into_iter()
            .filter(move |plugin| plugin.targets().contains(&target) && self.is_on(plugin.name()))
    }

    fn quotas<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        write: Write<'a>,
    ) -> Option<Quotas<'a>> {
        let namespaced = attributes.served.info.namespaced && !write.new.namespace().is_empty();
        let counted = namespaced && self.is_on(resource_quota::NAME);
        counted.then_some(Quotas { objects, attributes, write, shared: &self.shared_transactions })
    }
}

impl Admission for AdmissionChain {
    fn mutate<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a mut Object>,
        old: Option<&'a Object>,
    ) -> Option<Pending<'a, Vec<String>>> {
        let target = MatchTarget::new(attributes);
        let asked = |target: &MatchTarget<'_>| Concerned {
            policies: new.is_some()
                && self.is_on(MUTATING_POLICY)
                && self.mutating_policies.concern(objects, target),
            webhooks: self.is_on(MUTATING_WEBHOOK) && self.mutating_webhooks.concern(objects, target),
        };
        let concerned = target.as_ref().map(asked).unwrap_or_default();
        if !concerned.any() && (new.is_none() || self.plugins(&attributes).next().is_none()) {
            return None;
        }
        let mutation = Mutation { chain: self, objects, attributes, target, concerned, old };
        Some(Box::pin(async move { mutation.run(new).await }))
    }

    fn validate<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a Object>,
        old: Option<&'a Object>,
    ) -> Option<Pending<'a, Vec<String>>> {
        let target = MatchTarget::new(attributes);
        let asked = |target: &MatchTarget<'_>| Concerned {
            policies: self.is_on(VALIDATING_POLICY) && self.validating_policies.concern(objects, target),
            webhooks: self.is_on(VALIDATING_WEBHOOK) && self.validating_webhooks.concern(objects, target),
        };
        let concerned = target.as_ref().map(asked).unwrap_or_default();
        let target = target.filter(|_| concerned.any());
        if target.is_none() && (new.is_none() || self.plugins(&attributes).next().is_none()) {
            return None;
        }
        Some(Box::pin(async move {
            let mut warnings = Vec::new();
            if let Some(new) = new {
                for plugin in self.plugins(&attributes) {
                    let validated =
                        plugin.validate(objects, ValidationRequest { attributes, new, old }).await;
                    extend(&mut warnings, validated)?;
                }
            }
            if let Some(target) = &target {
                let (pair, metrics) = (Pair { new, old }, &self.metrics);
                if concerned.policies {
                    let validated = self.validating_policies.validate(objects, target, metrics, pair).await;
                    extend(&mut warnings, validated)?;
                }
                if concerned.webhooks {
                    let validated = self.validating_webhooks.validate(objects, target, metrics, pair).await;
                    extend(&mut warnings, validated)?;
                }
            }
            Ok(warnings)
        }))
    }

    fn check_quota<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        write: Write<'a>,
    ) -> Option<Pending<'a, ()>> {
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
    ) -> Option<Pending<'a, Charged>> {
        let quotas = self.quotas(objects, attributes, write)?;
        Some(Box::pin(async move { quotas.commit(txn, checks).await }))
    }
}

/// Which of those that are configured are concerned by a request.
#[derive(Clone, Copy, Default)]
struct Concerned {
    policies: bool,
    webhooks: bool,
}

impl Concerned {
    fn any(self) -> bool {
        self.policies || self.webhooks
    }
}

/// A request on its way through all who may change it.
struct Mutation<'a> {
    chain: &'a AdmissionChain,
    objects: &'a Objects,
    attributes: Attributes<'a>,
    /// Nothing where no webhook and no policy may be concerned.
    target: Option<MatchTarget<'a>>,
    concerned: Concerned,
    old: Option<&'a Object>,
}

impl Mutation<'_> {
    /// All rounds; what the caller is warned of.
    async fn run(&self, mut new: Option<&mut Object>) -> Result<Vec<String>> {
        let mut rounds = Rounds::default();
        let (mut again, mut warnings) = (Again::default(), Vec::new());
        loop {
            let round = self.round(new.as_deref_mut(), &mut rounds, &mut again, &mut warnings).await;
            if let Err(status) = round {
                return Err(status.with_warnings(warnings));
            }
            if rounds.again || !rounds.wanted {
                return Ok(warnings);
            }
            rounds.again = true;
        }
    }

    async fn round(
        &self,
        mut new: Option<&mut Object>,
        rounds: &mut Rounds,
        again: &mut Again,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let Self { chain, objects, attributes, target, concerned, old } = self;
        if let Some(new) = new.as_deref_mut() {
            for plugin in chain.plugins(attributes) {
                let request = MutationRequest { attributes: *attributes, new: &mut *new, old: *old };
                plugin.mutate(objects, request).await?;
            }
        }
        let (Some(target), metrics) = (target, &chain.metrics) else { return Ok(()) };
        if let Some(new) = new.as_deref_mut().filter(|_| concerned.policies) {
            let reinvocation = &mut again.policies;
            let round = PolicyRound { objects, target, metrics, rounds: &mut *rounds, reinvocation };
            chain.mutating_policies.mutate(round, new, *old).await?;
        }
        if concerned.webhooks {
            let reinvocation = &mut again.webhooks;
            let round = Round { objects, target, metrics, rounds, reinvocation, warnings };
            chain.mutating_webhooks.mutate(round, new, *old).await?;
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

/// Adds warnings, or adds those there are to a refusal.
fn extend(warnings: &mut Vec<String>, validated: Result<Vec<String>>) -> Result<()> {
    match validated {
        Ok(further) => warnings.extend(further),
        Err(status) => return Err(status.with_warnings(std::mem::take(warnings))),
    }
    Ok(())
}
