//! Descriptions of the plugins, for docs/reference/admission-plugins.md.

use crate::plugins::PLUGINS;

/// A plugin, as the reference lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginReference {
    /// Name of the plugin.
    pub name: &'static str,
    /// True if the plugin is enabled by default.
    pub on_by_default: bool,
    /// True if the plugin takes part in mutation.
    pub mutates: bool,
    /// True if the plugin takes part in validation.
    pub validates: bool,
    /// Effect of the plugin, in one sentence.
    pub description: &'static str,
}

/// All plugins, in the order in which they run.
pub fn plugin_reference() -> impl Iterator<Item = PluginReference> {
    PLUGINS.iter().zip(DESCRIPTIONS).map(|(row, (_, description))| PluginReference {
        name: row.name,
        on_by_default: row.on_by_default,
        mutates: row.phases.mutates,
        validates: row.phases.validates,
        description,
    })
}

/// Names and descriptions, in the order of the table of plugins.
const DESCRIPTIONS: [(&str, &str); PLUGINS.len()] = [
    ("AlwaysAdmit", "Admits all requests. Deprecated upstream."),
    ("NamespaceAutoProvision", "Creates a missing namespace when an object is created in it."),
    (
        "NamespaceLifecycle",
        "Rejects new objects in missing or terminating namespaces, and deletion of the system namespaces.",
    ),
    ("NamespaceExists", "Rejects writes in missing namespaces."),
    (
        "LimitPodHardAntiAffinityTopology",
        "Rejects pods with required anti-affinity for a topology other than the host name.",
    ),
    ("LimitRanger", "Applies the defaults of LimitRanges and enforces their limits."),
    ("ServiceAccount", "Sets the service account of pods, checks that it exists, and mounts its token."),
    ("NodeRestriction", "Limits kubelets to their own Node object and the pods bound to it."),
    ("TaintNodesByCondition", "Taints new nodes as not ready."),
    ("AlwaysPullImages", "Sets the image pull policy of all containers to Always."),
    (
        "ImagePolicyWebhook",
        "Asks a webhook whether the images of pods are allowed. Requires a configuration.",
    ),
    ("PodSecurity", "Enforces the Pod Security Standards that namespace labels or the configuration select."),
    ("PodNodeSelector", "Merges the node selector of the namespace's annotation into pods."),
    ("Priority", "Resolves the priority class of pods to a priority."),
    (
        "DefaultTolerationSeconds",
        "Adds tolerations for the taints not-ready and unreachable to pods (--default-*-toleration-seconds).",
    ),
    (
        "PodTolerationRestriction",
        "Adds the default tolerations of the namespace to pods, and limits tolerations.",
    ),
    ("EventRateLimit", "Limits the rate of Events; excess Events are rejected with 429."),
    ("ExtendedResourceToleration", "Adds tolerations for the extended resources that pods request."),
    ("DefaultStorageClass", "Sets the default storage class of PersistentVolumeClaims."),
    ("StorageObjectInUseProtection", "Adds the protection finalizers to PersistentVolumes and their claims."),
    ("PodGroupProtection", "Has no effect: PodGroups are not served."),
    (
        "OwnerReferencesPermissionEnforcement",
        "Requires permission to delete an object to change its owners, and to block deletion of an owner.",
    ),
    ("PersistentVolumeClaimResize", "Allows claims to grow only if their storage class supports expansion."),
    ("RuntimeClass", "Sets the overhead and scheduling constraints of a pod's RuntimeClass."),
    ("CertificateApproval", "Requires permission to approve CertificateSigningRequests of a signer."),
    ("CertificateSigning", "Requires permission to sign CertificateSigningRequests of a signer."),
    ("ClusterTrustBundleAttest", "Requires permission to attest for the signer of a ClusterTrustBundle."),
    (
        "CertificateSubjectRestriction",
        "Rejects requests for client certificates with the group system:masters.",
    ),
    ("DefaultIngressClass", "Sets the default class of Ingresses."),
    ("DenyServiceExternalIPs", "Rejects new external IPs of Services."),
    ("PodTopologyLabels", "Copies the zone and region labels of a node to pods that are bound to it."),
    ("PodGroupWorkloadExists", "Has no effect: PodGroups are not served."),
    (
        "NodeDeclaredFeatureValidator",
        "Rejects updates of running pods that their node does not declare to support.",
    ),
    ("JobValidation", "Has no effect: PodGroups are not served."),
    ("PodResizeValidator", "Rejects resizes of pods on nodes that lack the capacity or do not run Linux."),
    ("MutatingAdmissionPolicy", "Applies MutatingAdmissionPolicies."),
    ("MutatingAdmissionWebhook", "Calls mutating admission webhooks."),
    ("ValidatingAdmissionPolicy", "Applies ValidatingAdmissionPolicies."),
    ("ValidatingAdmissionWebhook", "Calls validating admission webhooks."),
    ("ResourceQuota", "Enforces ResourceQuotas."),
    ("AlwaysDeny", "Rejects all requests. Deprecated upstream."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_in_the_order_of_the_table() {
        assert_eq!(DESCRIPTIONS.map(|(name, _)| name), PLUGINS.each_ref().map(|row| row.name));
    }
}
