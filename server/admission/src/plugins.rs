//! Table of all admission plugins in upstream's order, with their names, defaults and constructors (upstream's
//! `AllOrderedPlugins` and `DefaultOffAdmissionPlugins`).
//!
//! The table does not depend on the logic of the plugins or on the command line.

use std::sync::Arc;

use portico_kit::metrics::Registry;

use self::PluginOrigin::{InChain, InRegistry, Inert, Module, ModuleWithMetrics};
use crate::plugin::Plugin;
use crate::settings::AdmissionSettings;
use crate::{
    always, always_pull_images, anti_affinity, certificates, claim_resize, declared_features, default_class,
    event_rate_limit, extended_resources, external_ips, image_policy, in_use_protection, limit_ranger,
    namespace_exists, namespace_lifecycle, node_restriction, node_taints, owner_references,
    pod_node_selector, pod_resize, pod_security, pod_toleration_restriction, priority, runtime_class,
    service_account, tolerations, topology_labels,
};

/// Plugin of upstream's list.
pub(crate) struct Row {
    /// Upstream's name, as used in flags.
    pub(crate) name: &'static str,
    pub(crate) on_by_default: bool,
    /// Phases of admission in which upstream runs the plugin.
    pub(crate) phases: Phases,
    pub(crate) origin: PluginOrigin,
}

/// Phases of admission in which a plugin runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Phases {
    pub(crate) mutates: bool,
    pub(crate) validates: bool,
}

/// Implementation of a plugin.
#[derive(Clone, Copy)]
pub(crate) enum PluginOrigin {
    /// Module of this crate.
    Module(fn(&AdmissionSettings) -> Arc<dyn Plugin>),
    /// Module of this crate that has metrics.
    ModuleWithMetrics(fn(&AdmissionSettings, &Registry) -> Arc<dyn Plugin>),
    /// Part of the chain: policies, webhooks, quotas.
    InChain,
    /// Part of the registry, for every write.
    InRegistry,
    /// No logic: the plugin handles an API of a disabled gate, which is not served.
    Inert,
}

const MUTATES: Phases = Phases { mutates: true, validates: false };
const VALIDATES: Phases = Phases { mutates: false, validates: true };
const BOTH: Phases = Phases { mutates: true, validates: true };

/// Plugins whose namespace checks the registry performs for each write.
pub(crate) const NAMESPACE_LIFECYCLE: &str = "NamespaceLifecycle";
pub(crate) const NAMESPACE_AUTO_PROVISION: &str = "NamespaceAutoProvision";

/// Upstream's names of webhooks, policies and quotas as plugins.
pub(crate) const MUTATING_POLICY: &str = "MutatingAdmissionPolicy";
pub(crate) const VALIDATING_POLICY: &str = "ValidatingAdmissionPolicy";
pub(crate) const MUTATING_WEBHOOK: &str = "MutatingAdmissionWebhook";
pub(crate) const VALIDATING_WEBHOOK: &str = "ValidatingAdmissionWebhook";
pub(crate) const RESOURCE_QUOTA: &str = "ResourceQuota";

const fn on_by_default(name: &'static str, phases: Phases, origin: PluginOrigin) -> Row {
    Row { name, on_by_default: true, phases, origin }
}

const fn off_by_default(name: &'static str, phases: Phases, origin: PluginOrigin) -> Row {
    Row { name, on_by_default: false, phases, origin }
}

/// Returns a plugin that requires a feature gate; a plugin without effect if the gate is disabled.
fn with_feature_gate(
    gate: &str,
    settings: &AdmissionSettings,
    plugin: impl Plugin + 'static,
) -> Arc<dyn Plugin> {
    if settings.features.enabled(gate) { Arc::new(plugin) } else { Arc::new(always::AlwaysAdmit) }
}

/// All plugins. Within each phase, plugins run in this order.
pub(crate) const PLUGINS: [Row; 41] = [
    off_by_default("AlwaysAdmit", BOTH, Module(|_| Arc::new(always::AlwaysAdmit))),
    off_by_default(NAMESPACE_AUTO_PROVISION, MUTATES, InRegistry),
    on_by_default(
        NAMESPACE_LIFECYCLE,
        MUTATES,
        Module(|_| Arc::new(namespace_lifecycle::NamespaceLifecycle)),
    ),
    off_by_default("NamespaceExists", VALIDATES, Module(|_| Arc::new(namespace_exists::NamespaceExists))),
    off_by_default(
        "LimitPodHardAntiAffinityTopology",
        VALIDATES,
        Module(|_| Arc::new(anti_affinity::LimitPodHardAntiAffinityTopology)),
    ),
    on_by_default("LimitRanger", BOTH, Module(|_| Arc::new(limit_ranger::LimitRanger))),
    on_by_default("ServiceAccount", BOTH, Module(|_| Arc::new(service_account::ServiceAccount))),
    off_by_default(
        "NodeRestriction",
        MUTATES,
        Module(|settings| Arc::new(node_restriction::NodeRestriction::new(settings))),
    ),
    on_by_default("TaintNodesByCondition", MUTATES, Module(|_| Arc::new(node_taints::TaintNodesByCondition))),
    off_by_default("AlwaysPullImages", BOTH, Module(|_| Arc::new(always_pull_images::AlwaysPullImages))),
    off_by_default(
        "ImagePolicyWebhook",
        VALIDATES,
        Module(|s| Arc::new(image_policy::ImagePolicyWebhook::new(&s.configuration.image_policy))),
    ),
    on_by_default(
        "PodSecurity",
        VALIDATES,
        ModuleWithMetrics(|s, metrics| {
            Arc::new(pod_security::PodSecurity::new(&s.configuration.pod_security, metrics))
        }),
    ),
    off_by_default(
        "PodNodeSelector",
        BOTH,
        Module(|s| Arc::new(pod_node_selector::PodNodeSelector::new(&s.configuration.pod_node_selector))),
    ),
    on_by_default("Priority", BOTH, Module(|_| Arc::new(priority::Priority))),
    on_by_default(
        "DefaultTolerationSeconds",
        MUTATES,
        Module(|s| {
            Arc::new(tolerations::DefaultTolerationSeconds::new(
                s.tolerations.not_ready_seconds,
                s.tolerations.unreachable_seconds,
            ))
        }),
    ),
    off_by_default(
        "PodTolerationRestriction",
        BOTH,
        Module(|s| {
            Arc::new(pod_toleration_restriction::PodTolerationRestriction::new(
                &s.configuration.pod_toleration_restriction,
            ))
        }),
    ),
    off_by_default(
        "EventRateLimit",
        VALIDATES,
        Module(|s| Arc::new(event_rate_limit::EventRateLimit::new(&s.configuration.event_rate_limit))),
    ),
    off_by_default(
        "ExtendedResourceToleration",
        MUTATES,
        Module(|_| Arc::new(extended_resources::ExtendedResourceToleration)),
    ),
    on_by_default("DefaultStorageClass", MUTATES, Module(|_| Arc::new(default_class::STORAGE))),
    on_by_default(
        "StorageObjectInUseProtection",
        MUTATES,
        Module(|_| Arc::new(in_use_protection::StorageObjectInUseProtection)),
    ),
    on_by_default("PodGroupProtection", MUTATES, Inert),
    off_by_default(
        "OwnerReferencesPermissionEnforcement",
        VALIDATES,
        Module(|_| Arc::new(owner_references::OwnerReferences)),
    ),
    on_by_default(
        "PersistentVolumeClaimResize",
        VALIDATES,
        Module(|_| Arc::new(claim_resize::PersistentVolumeClaimResize)),
    ),
    on_by_default("RuntimeClass", BOTH, Module(|_| Arc::new(runtime_class::RuntimeClass))),
    on_by_default("CertificateApproval", VALIDATES, Module(|_| Arc::new(certificates::CertificateApproval))),
    on_by_default("CertificateSigning", VALIDATES, Module(|_| Arc::new(certificates::CertificateSigning))),
    on_by_default(
        "ClusterTrustBundleAttest",
        VALIDATES,
        Module(|_| Arc::new(certificates::ClusterTrustBundleAttest)),
    ),
    on_by_default(
        "CertificateSubjectRestriction",
        VALIDATES,
        Module(|_| Arc::new(certificates::CertificateSubjectRestriction)),
    ),
    on_by_default("DefaultIngressClass", MUTATES, Module(|_| Arc::new(default_class::INGRESS))),
    off_by_default(
        "DenyServiceExternalIPs",
        VALIDATES,
        Module(|_| Arc::new(external_ips::DenyServiceExternalIps)),
    ),
    on_by_default(
        "PodTopologyLabels",
        MUTATES,
        Module(|s| with_feature_gate("PodTopologyLabelsAdmission", s, topology_labels::PodTopologyLabels)),
    ),
    on_by_default("PodGroupWorkloadExists", VALIDATES, Inert),
    on_by_default(
        "NodeDeclaredFeatureValidator",
        VALIDATES,
        Module(|s| {
            with_feature_gate("NodeDeclaredFeatures", s, declared_features::NodeDeclaredFeatureValidator)
        }),
    ),
    on_by_default("JobValidation", VALIDATES, Inert),
    on_by_default("PodResizeValidator", VALIDATES, Module(|_| Arc::new(pod_resize::PodResizeValidator))),
    on_by_default(MUTATING_POLICY, MUTATES, InChain),
    on_by_default(MUTATING_WEBHOOK, MUTATES, InChain),
    on_by_default(VALIDATING_POLICY, VALIDATES, InChain),
    on_by_default(VALIDATING_WEBHOOK, VALIDATES, InChain),
    on_by_default(RESOURCE_QUOTA, VALIDATES, InChain),
    off_by_default("AlwaysDeny", BOTH, Module(|_| Arc::new(always::AlwaysDeny))),
];

/// True if a plugin runs after webhooks and policies, as upstream's last plugin does.
pub(crate) fn is_last(name: &str) -> bool {
    name == "AlwaysDeny"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(is_included: impl Fn(&Row) -> bool) -> String {
        PLUGINS.iter().filter(|row| is_included(row)).map(|row| row.name).collect::<Vec<_>>().join(",")
    }

    /// Expects the two lines that kube-apiserver 1.36.3 logs at startup.
    #[test]
    fn the_default_plugins_are_those_that_upstream_loads() {
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
