//! All admission plugins of upstream's list, in its order: the one table of their names, of what is on by default, and of how
//! each is made (upstream's `AllOrderedPlugins` and `DefaultOffAdmissionPlugins`).
//!
//! It must not know what a plugin does, nor what a command line looks like.

use std::sync::Arc;

use self::Made::{Absent, By, InChain, InRegistry};
use crate::plugin::Plugin;
use crate::settings::AdmissionSettings;
use crate::{
    claim_resize, default_class, in_use_protection, limit_ranger, node_taints, pod_security, priority,
    runtime_class, service_account, tolerations, topology_labels,
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
    /// A part of the chain: policies, webhooks, quotas.
    InChain,
    /// The registry, for every write.
    InRegistry,
    /// Not here: turning it on changes nothing.
    Absent,
}

const MUTATES: Phases = Phases { mutates: true, validates: false };
const VALIDATES: Phases = Phases { mutates: false, validates: true };
const BOTH: Phases = Phases { mutates: true, validates: true };

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

/// The table. Within each half plugins are asked in this order.
pub(crate) const PLUGINS: [Row; 41] = [
    off("AlwaysAdmit", BOTH, Absent),
    off("NamespaceAutoProvision", MUTATES, Absent),
    on("NamespaceLifecycle", MUTATES, InRegistry),
    off("NamespaceExists", VALIDATES, Absent),
    off("LimitPodHardAntiAffinityTopology", VALIDATES, Absent),
    on("LimitRanger", BOTH, By(|_| Arc::new(limit_ranger::LimitRanger))),
    on("ServiceAccount", BOTH, By(|_| Arc::new(service_account::ServiceAccount))),
    off("NodeRestriction", MUTATES, Absent),
    on("TaintNodesByCondition", MUTATES, By(|_| Arc::new(node_taints::TaintNodesByCondition))),
    off("AlwaysPullImages", BOTH, Absent),
    off("ImagePolicyWebhook", VALIDATES, Absent),
    on("PodSecurity", VALIDATES, By(|_| Arc::new(pod_security::PodSecurity))),
    off("PodNodeSelector", BOTH, Absent),
    on("Priority", BOTH, By(|_| Arc::new(priority::Priority))),
    on("DefaultTolerationSeconds", MUTATES, By(|_| Arc::new(tolerations::DefaultTolerationSeconds))),
    off("PodTolerationRestriction", BOTH, Absent),
    off("EventRateLimit", VALIDATES, Absent),
    off("ExtendedResourceToleration", MUTATES, Absent),
    on("DefaultStorageClass", MUTATES, By(|_| Arc::new(default_class::STORAGE))),
    on(
        "StorageObjectInUseProtection",
        MUTATES,
        By(|_| Arc::new(in_use_protection::StorageObjectInUseProtection)),
    ),
    on("PodGroupProtection", MUTATES, Absent),
    off("OwnerReferencesPermissionEnforcement", VALIDATES, Absent),
    on("PersistentVolumeClaimResize", VALIDATES, By(|_| Arc::new(claim_resize::PersistentVolumeClaimResize))),
    on("RuntimeClass", BOTH, By(|_| Arc::new(runtime_class::RuntimeClass))),
    on("CertificateApproval", VALIDATES, Absent),
    on("CertificateSigning", VALIDATES, Absent),
    on("ClusterTrustBundleAttest", VALIDATES, Absent),
    on("CertificateSubjectRestriction", VALIDATES, Absent),
    on("DefaultIngressClass", MUTATES, By(|_| Arc::new(default_class::INGRESS))),
    off("DenyServiceExternalIPs", VALIDATES, Absent),
    on("PodTopologyLabels", MUTATES, By(|_| Arc::new(topology_labels::PodTopologyLabels))),
    on("PodGroupWorkloadExists", VALIDATES, Absent),
    on("NodeDeclaredFeatureValidator", VALIDATES, Absent),
    on("JobValidation", VALIDATES, Absent),
    on("PodResizeValidator", VALIDATES, Absent),
    on(MUTATING_POLICY, MUTATES, InChain),
    on(MUTATING_WEBHOOK, MUTATES, InChain),
    on(VALIDATING_POLICY, VALIDATES, InChain),
    on(VALIDATING_WEBHOOK, VALIDATES, InChain),
    on(RESOURCE_QUOTA, VALIDATES, InChain),
    off("AlwaysDeny", BOTH, Absent),
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
