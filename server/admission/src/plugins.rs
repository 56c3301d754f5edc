//! Table of all admission plugins in upstream's order, with their names, defaults and constructors (upstream's
//! `AllOrderedPlugins` and `DefaultOffAdmissionPlugins`).
//!
//! The table does not depend on the logic of the plugins or on the command line.

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

/// Plugin of upstream's list.
pub(crate) struct Row {
    /// Upstream's name, as used in flags.
    pub(crate) name: &'static str,
    pub(crate) on_by_default: bool,
    /// Phases of admission in which upstream runs the plugin.
    pub(crate) phases: Phases,
    pub(crate) made: Made,
}

/// Phases of admission in which a plugin runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Phases {
    pub(crate) mutates: bool,
    pub(crate) validates: bool,
}

/// Implementation of a plugin.
#[derive(Clone, Copy)]
pub(crate) enum Made {
    /// Module of this crate.
    By(fn(&AdmissionSettings) -> Arc<dyn Plugin>),
    /// Module of this crate that has metrics.
    Counting(fn(&AdmissionSettings, &Registry) -> Arc<dyn Plugin>),
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

const fn on(name: &'static str, phases: Phases, made: Made) -> Row {
    Row { name, on_by_default: true, phases, made }
}

const fn off(name: &'static str, phases: Phases, made: Made) -> Row {
    Row { name, on_by_default: false, phases, made }
}

/// Returns a plugin that requires a feature gate; a plugin without effect if the gate is disabled.
fn behind(gate: &str, settings: &AdmissionSettings, plugin: impl Plugin + 'static) -> Arc<dyn Plugin> {
    if settings.features.enabled(gate) { Arc::new(plugin) } else { Arc::new(always::AlwaysAdmit) }
}

/// All plugins. Within each phase, plugins run in this order.
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

/// True if a plugin runs after webhooks and policies, as upstream's last plugin does.
pub(crate) fn is_last(name: &str) -> bool {
    name == "AlwaysDeny"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: impl Fn(&Row) -> bool) -> String {
        PLUGINS.iter().filter(|row| of(row)).map(|row| row.name).collect::<Vec<_>>().join(",")
    }

    /// Expects the two lines that kube-apiserver 1.36.3 logs at startup.
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
