//! Versions that kube-apiserver registers, hence can decode, but does not serve by default.

use portico_machinery::{GroupVersion, GroupVersionKind};

/// Group, version, kinds whose fields are those of the current version, and kinds whose fields are not. Recorded with
/// kube-apiserver 1.36.3.
#[rustfmt::skip]
const RETIRED: &[(&str, &str, &[&str], &[&str])] = &[
    ("admissionregistration.k8s.io", "v1alpha1", &["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"], &[]),
    ("admissionregistration.k8s.io", "v1beta1", &["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration"], &[]),
    ("apiextensions.k8s.io", "v1beta1", &[], &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", "v1beta1", &["APIService"], &[]),
    ("apps", "v1beta1", &["ControllerRevision", "Deployment", "StatefulSet"], &[]),
    ("apps", "v1beta2", &["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"], &[]),
    ("authentication.k8s.io", "v1alpha1", &["SelfSubjectReview"], &[]),
    ("authentication.k8s.io", "v1beta1", &["SelfSubjectReview", "TokenReview"], &[]),
    ("authorization.k8s.io", "v1beta1", &["LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"], &[]),
    ("batch", "v1beta1", &["CronJob"], &[]),
    ("certificates.k8s.io", "v1beta1", &["CertificateSigningRequest"], &[]),
    ("coordination.k8s.io", "v1beta1", &["Lease"], &[]),
    ("discovery.k8s.io", "v1beta1", &[], &["EndpointSlice"]),
    ("events.k8s.io", "v1beta1", &["Event"], &[]),
    ("extensions", "v1beta1", &["DaemonSet", "Deployment", "NetworkPolicy", "ReplicaSet"], &["Ingress"]),
    ("flowcontrol.apiserver.k8s.io", "v1beta1", &["FlowSchema"], &["PriorityLevelConfiguration"]),
    ("flowcontrol.apiserver.k8s.io", "v1beta2", &["FlowSchema"], &["PriorityLevelConfiguration"]),
    ("flowcontrol.apiserver.k8s.io", "v1beta3", &["FlowSchema"], &["PriorityLevelConfiguration"]),
    ("networking.k8s.io", "v1beta1", &["IPAddress", "IngressClass", "ServiceCIDR"], &["Ingress"]),
    ("node.k8s.io", "v1alpha1", &[], &["RuntimeClass"]),
    ("node.k8s.io", "v1beta1", &["RuntimeClass"], &[]),
    ("policy", "v1beta1", &["PodDisruptionBudget"], &[]),
    ("rbac.authorization.k8s.io", "v1alpha1", &["ClusterRole", "Role"], &["ClusterRoleBinding", "RoleBinding"]),
    ("rbac.authorization.k8s.io", "v1beta1", &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"], &[]),
    ("resource.k8s.io", "v1beta1", &["DeviceClass"], &["ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"]),
    ("resource.k8s.io", "v1beta2", &["DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"], &[]),
    ("scheduling.k8s.io", "v1beta1", &["PriorityClass"], &[]),
    ("storage.k8s.io", "v1alpha1", &["CSIStorageCapacity", "VolumeAttachment", "VolumeAttributesClass"], &[]),
    ("storage.k8s.io", "v1beta1", &["CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"], &[]),
];

/// True for a retired version of a kind whose fields are those of the current version. An Event of `events.k8s.io` has other
/// fields than the core group's.
pub(crate) fn has_current_fields(version: &GroupVersion, current: &GroupVersionKind) -> bool {
    let is_same_type = version.group == current.group || version.group == "extensions";
    is_same_type && kinds(&version.group, &version.version, |(same, _)| same.contains(&current.kind.as_str()))
}

/// True for a kind in a version that is registered and not served by default.
pub(super) fn is_retired(kind: &GroupVersionKind) -> bool {
    let name = kind.kind.as_str();
    kinds(&kind.group, &kind.version, |(same, other)| same.contains(&name) || other.contains(&name))
}

fn kinds(group: &str, version: &str, has: impl Fn((&[&str], &[&str])) -> bool) -> bool {
    RETIRED.iter().any(|(g, v, same, other)| (*g, *v) == (group, version) && has((same, other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_retired_version_are_current_unless_they_differ() {
        let rows = [
            ("policy/v1beta1", "policy/v1", "PodDisruptionBudget", true),
            ("extensions/v1beta1", "apps/v1", "Deployment", true),
            ("extensions/v1beta1", "networking.k8s.io/v1", "NetworkPolicy", true),
            ("extensions/v1beta1", "networking.k8s.io/v1", "Ingress", false),
            ("networking.k8s.io/v1beta1", "networking.k8s.io/v1", "Ingress", false),
            ("networking.k8s.io/v1beta1", "networking.k8s.io/v1", "IngressClass", true),
            ("events.k8s.io/v1beta1", "events.k8s.io/v1", "Event", true),
            ("events.k8s.io/v1beta1", "v1", "Event", false),
            ("policy/v1beta9", "policy/v1", "PodDisruptionBudget", false),
        ];
        for (retired, current, kind, expected) in rows {
            let [retired, current] = [retired, current].map(|text| text.parse::<GroupVersion>().unwrap());
            assert_eq!(has_current_fields(&retired, &current.kind(kind)), expected, "{kind} of {retired}");
            let is_registered = retired.version != "v1beta9";
            assert_eq!(is_retired(&retired.kind(kind)), is_registered, "{kind} of {retired}");
        }
    }
}
