//! The chain: all plugins in upstream's order, policies, webhooks, then quotas with the transaction.

use std::sync::Arc;

use portico_kit::metrics::Registry;
use portico_machinery::Object;
use portico_registry::{Admission, Attributes, Charged, NamespaceRules, Objects, Pending, Write};
use portico_store::{Operation, Txn};

use crate::loaded::Loaded;
use crate::metrics::Metrics;
use crate::mutation::MutatingSteps;
use crate::plugins::{NAMESPACE_AUTO_PROVISION, NAMESPACE_LIFECYCLE, RESOURCE_QUOTA};
use crate::resource_quota::{LimitedResource, Quotas, SharedTransactions};
use crate::settings::AdmissionSettings;
use crate::validation::ValidatingSteps;

/// The plugins that are on, policies, webhooks, and quotas.
pub struct AdmissionChain {
    mutating: MutatingSteps,
    validating: ValidatingSteps,
    namespaces: NamespaceRules,
    /// Nothing where quotas are off.
    shared_transactions: Option<SharedTransactions>,
    /// What may be used only where a quota covers it.
    limited: Vec<LimitedResource>,
}

impl AdmissionChain {
    /// The chain of the plugins that are on; logs which these are, as upstream does.
    #[must_use]
    pub fn new(settings: &AdmissionSettings, metrics: &Registry) -> Self {
        let (loaded, metrics) = (Loaded::new(settings), Arc::new(Metrics::new(metrics)));
        loaded.log();
        Self {
            mutating: MutatingSteps::new(&loaded, Arc::clone(&metrics)),
            validating: ValidatingSteps::new(&loaded, metrics),
            namespaces: NamespaceRules {
                lifecycle: loaded.has(NAMESPACE_LIFECYCLE),
                provision: loaded.has(NAMESPACE_AUTO_PROVISION),
            },
            shared_transactions: loaded.has(RESOURCE_QUOTA).then(SharedTransactions::default),
            limited: settings.configuration.limited_resources().to_vec(),
        }
    }

    fn quotas<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        write: Write<'a>,
    ) -> Option<Quotas<'a>> {
        let shared = self.shared_transactions.as_ref()?;
        let counted = attributes.served.info.namespaced && !write.new.namespace().is_empty();
        counted.then_some(Quotas { objects, attributes, write, shared, limited: &self.limited })
    }
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
    ) -> Option<Pending<'a, Vec<String>>> {
        let mutation = self.mutating.concerned(objects, attributes, new.is_some(), old)?;
        Some(Box::pin(async move { mutation.run(new).await }))
    }

    fn validate<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a Object>,
        old: Option<&'a Object>,
    ) -> Option<Pending<'a, Vec<String>>> {
        let validation = self.validating.concerned(objects, attributes, new, old)?;
        Some(Box::pin(async move { validation.run().await }))
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
