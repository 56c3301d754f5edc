//! The chain: all plugins in upstream's order, then quotas with the transaction.

use portico_machinery::Object;
use portico_registry::{Admission, Attributes, Charged, Objects, Pending, Write};
use portico_store::{Operation, Txn};

use crate::plugin::{MutationRequest, Plugin, ValidationRequest};
use crate::resource_quota::{self, Quotas, SharedTransactions};
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

/// The plugins that are on, and quotas.
#[derive(Default)]
pub struct AdmissionChain {
    /// Names of plugins that are off (`--disable-admission-plugins`).
    disabled: Vec<String>,
    shared_transactions: SharedTransactions,
}

impl AdmissionChain {
    /// A chain without these plugins, which are named as upstream names them.
    #[must_use]
    pub fn without(disabled: Vec<String>) -> Self {
        Self { disabled, shared_transactions: SharedTransactions::default() }
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
    ) -> Option<Pending<'a, ()>> {
        let new = new?;
        let mut plugins = self.plugins(&attributes).peekable();
        plugins.peek()?;
        Some(Box::pin(async move {
            for plugin in plugins {
                plugin.mutate(objects, MutationRequest { attributes, new: &mut *new, old }).await?;
            }
            Ok(())
        }))
    }

    fn validate<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a Object>,
        old: Option<&'a Object>,
    ) -> Option<Pending<'a, Vec<String>>> {
        let new = new?;
        let mut plugins = self.plugins(&attributes).peekable();
        plugins.peek()?;
        Some(Box::pin(async move {
            let mut warnings = Vec::new();
            for plugin in plugins {
                warnings.extend(plugin.validate(objects, ValidationRequest { attributes, new, old }).await?);
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
