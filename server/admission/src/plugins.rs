//! All admission plugins of upstream's list, in its order: the one table of their names, of what is on by default, and of how
//! each is made (upstream's `AllOrderedPlugins` and `DefaultOffAdmissionPlugins`).
//!
//! It must not know what a plugin does, nor what a command line looks like.

use std::sync::Arc;

use portico_kit::metrics::Registry;

use self::Made::{By, Counting, InChain, InRegistry, Inert};
use crate::plugin::Plugin;
use crate::settings::AdmissionSettings;
use crate::{
    always, always_pull_images, anti_affinity, certificates, claim_resize, declared_features, default_class,
    event_rate_limit, extended_resources, external_ips, image_policy, in_use_protection, limit_ranger,
    namespace_exists, namespace_lifecycle, node_restriction, node_taints, owner_references,
    pod_node_selector, pod_resize, pod_security, pod_toleration_restriction, priority, runtime_class,
    service_account, tolerations, topology_labels,
};

/// One plugin of upstream's list.
pub(crate) struct Row {
    /// Upstream's name, as the flags know it.
    pub(crate) name: &'static str,
    pub(crate) on_by_default: bool,
    /// In which halves of admission upstream asks it.
    pub(crate) phases: Phases,
    pub(crate) made: Made,
}

/// The halves of admission in which a plugin is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Phases {
    pub(crate) mutates: bool,
    pub(crate) validates: bool,
}

/// Where a plugin comes from.
#[derive(Clone, Copy)]
pub(crate) enum Made {
    /// A module of this crate.
    By(fn(&AdmissionSettings) -> Arc<dyn Plugin>),
    /// The same, with metrics of its own.
    Counting(fn(&AdmissionSettings, &Registry) -> Arc<dyn Plugin>),
    /// A part of the chain: policies, webhooks, quotas.
    InChain,
    /// The registry, for every write.
    InRegistry,
    /// Not at all: what it looks at is an API of a gate that is off, and not served here.
    Inert,
}

const MUTATES: Phases = Phases { mutates: true, validates: false };
const VALIDATES: Phases = Phases { mutates: false, validates: true };
const BOTH: Phases = Phases { mutates: true, validates: true };

/// What the registry asks of the namespace of each write.
pub(crate) const NAMESPACE_LIFECYCLE: &str = "NamespaceLifecycle";
pub(crate) const NAMESPACE_AUTO_PROVISION: &str = "NamespaceAutoProvision";

/// What upstream calls webhooks, policies and quotas as plugins.
pub(crate) const MUTATING_POLICY: &str = "MutatingAdmissionPolicy";
pub(crate) const VALIDATING_POLICY: &str = "ValidatingAdmissionPolicy";
pub(crate) const MUTATING_WEBHOOK: &str = "MutatingAdmissionWebhook";
pub(crate) const VALIDATING_WEBHOOK: &str = "ValidatingAdmissionWebhook";
pub(crate) const RESOURCE_QUOTA: &str = "ResourceQuota";

const fn on(name: &'static str, phases: Phases, made: Made) -> Row {
    Row { name, on_by_default: true, phases, made }
}

const fn off(name: &'static str, phases: Phases, made: Made) -> Row {
    Row { name, on_by_default: false, phases, made }
}

/// A plugin behind a gate: one that looks at nothing where the gate is off.
fn behind(gate: &str, settings: &AdmissionSettings, plugin: impl Plugin + 'static) -> Arc<dyn Plugin> {
    if settings.features.enabled(gate) { Arc::new(plugin) } else { Arc::new(always::AlwaysAdmit) }
}

/// The table. Within each half plugins are asked in this order.
pub(crate) const PLUGINS: [Row; 41] = [
    off("AlwaysAdmit", BOTH, By(|_| Arc::new(always::AlwaysAdmit))),
    off(NAMESPACE_AUTO_PROVISION, MUTATES, InRegistry),
    on(NAMESPACE_LIFECYCLE, MUTATES, By(|_| Arc::new(namespace_lifecycle::NamespaceLifecycle))),
    off("NamespaceExists", VALIDATES, By(|_| Arc::new(namespace_exists::NamespaceExists))),
    off(
        "LimitPodHardAntiAffinityTopology",
        VALIDATES,
        By(|_| Arc::new(anti_affinity::LimitPodHardAntiAffinityTopology)),
    ),
    on("LimitRanger", BOTH, By(|_| Arc::new(limit_ranger::LimitRanger))),
    on("ServiceAccount", BOTH, By(|_| Arc::new(service_account::ServiceAccount))),
    off(
        "NodeRestriction",
        MUTATES,
        By(|settings| Arc::new(node_restriction::NodeRestriction::new(settings))),
    ),
    on("TaintNodesByCondition", MUTATES, By(|_| Arc::new(node_taints::TaintNodesByCondition))),
    off("AlwaysPullImages", BOTH, By(|_| Arc::new(always_pull_images::AlwaysPullImages))),
    off(
        "ImagePolicyWebhook",
        VALIDATES,
        By(|s| Arc::new(image_policy::ImagePolicyWebhook::new(&s.configuration.image_policy))),
    ),
    on(
        "PodSecurity",
        VALIDATES,
        Counting(|s, metrics| {
            Arc::new(pod_security::PodSecurity::new(&s.configuration.pod_security, metrics))
        }),
    ),
    off(
        "PodNodeSelector",
        BOTH,
        By(|s| Arc::new(pod_node_selector::PodNodeSelector::new(&s.configuration.pod_node_selector))),
    ),
    on("Priority", BOTH, By(|_| Arc::new(priority::Priority))),
    on(
        "DefaultTolerationSeconds",
        MUTATES,
        By(|s| {
            Arc::new(tolerations::DefaultTolerationSeconds::new(
                s.tolerations.not_ready_seconds,
                s.tolerations.unreachable_seconds,
            ))
        }),
    ),
    off(
        "PodTolerationRestriction",
        BOTH,
        By(|s| {
            Arc::new(pod_toleration_restriction::PodTolerationRestriction::new(
                &s.configuration.pod_toleration_restriction,
            ))
        }),
    ),
    off(
        "EventRateLimit",
        VALIDATES,
        By(|s| Arc::new(event_rate_limit::EventRateLimit::new(&s.configuration.event_rate_limit))),
    ),
    off(
        "ExtendedResourceToleration",
        MUTATES,
        By(|_| Arc::new(extended_resources::ExtendedResourceToleration)),
    ),
    on("DefaultStorageClass", MUTATES, By(|_| Arc::new(default_class::STORAGE))),
    on(
        "StorageObjectInUseProtection",
        MUTATES,
        By(|_| Arc::new(in_use_protection::StorageObjectInUseProtection)),
    ),
    on("PodGroupProtection", MUTATES, Inert),
    off(
        "OwnerReferencesPermissionEnforcement",
        VALIDATES,
        By(|_| Arc::new(owner_references::OwnerReferences)),
    ),
    on("PersistentVolumeClaimResize", VALIDATES, By(|_| Arc::new(claim_resize::PersistentVolumeClaimResize))),
    on("RuntimeClass", BOTH, By(|_| Arc::new(runtime_class::RuntimeClass))),
    on("CertificateApproval", VALIDATES, By(|_| Arc::new(certificates::CertificateApproval))),
    on("CertificateSigning", VALIDATES, By(|_| Arc::new(certificates::CertificateSigning))),
    on("ClusterTrustBundleAttest", VALIDATES, By(|_| Arc::new(certificates::ClusterTrustBundleAttest))),
    on(
        "CertificateSubjectRestriction",
        VALIDATES,
        By(|_| Arc::new(certificates::CertificateSubjectRestriction)),
    ),
    on("DefaultIngressClass", MUTATES, By(|_| Arc::new(default_class::INGRESS))),
    off("DenyServiceExternalIPs", VALIDATES, By(|_| Arc::new(external_ips::DenyServiceExternalIps))),
    on(
        "PodTopologyLabels",
        MUTATES,
        By(|s| behind("PodTopologyLabelsAdmission", s, topology_labels::PodTopologyLabels)),
    ),
    on("PodGroupWorkloadExists", VALIDATES, Inert),
    on(
        "NodeDeclaredFeatureValidator",
        VALIDATES,
        By(|s| behind("NodeDeclaredFeatures", s, declared_features::NodeDeclaredFeatureValidator)),
    ),
    on("JobValidation", VALIDATES, Inert),
    on("PodResizeValidator", VALIDATES, By(|_| Arc::new(pod_resize::PodResizeValidator))),
    on(MUTATING_POLICY, MUTATES, InChain),
    on(MUTATING_WEBHOOK, MUTATES, InChain),
    on(VALIDATING_POLICY, VALIDATES, InChain),
    on(VALIDATING_WEBHOOK, VALIDATES, InChain),
    on(RESOURCE_QUOTA, VALIDATES, InChain),
    off("AlwaysDeny", BOTH, By(|_| Arc::new(always::AlwaysDeny))),
];

/// Whether a plugin is asked behind webhooks and policies, as upstream's last one is.
pub(crate) fn is_last(name: &str) -> bool {
    name == "AlwaysDeny"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: impl Fn(&Row) -> bool) -> String {
        PLUGINS.iter().filter(|row| of(row)).map(|row| row.name).collect::<Vec<_>>().join(",")
    }

    /// The two lines that kube-apiserver 1.36.3 logs at its start.
    #[test]
    fn what_is_on_by_default_is_what_upstream_loads() {
        assert_eq!(
            names(|row| row.on_by_default && row.phases.mutates),
            "NamespaceLifecycle,LimitRanger,ServiceAccount,TaintNodesByCondition,Priority,DefaultTolerationSeconds,DefaultStorageClass,StorageObjectInUseProtection,PodGroupProtection,RuntimeClass,DefaultIngressClass,PodTopologyLabels,MutatingAdmissionPolicy,MutatingAdmissionWebhook"
        );
        assert_eq!(
            names(|row| row.on_by_default && row.phases.validates),
            "LimitRanger,ServiceAccount,PodSecurity,Priority,PersistentVolumeClaimResize,RuntimeClass,CertificateApproval,CertificateSigning,ClusterTrustBundleAttest,CertificateSubjectRestriction,PodGroupWorkloadExists,NodeDeclaredFeatureValidator,JobValidation,PodResizeValidator,ValidatingAdmissionPolicy,ValidatingAdmissionWebhook,ResourceQuota"
        );
    }
}
