//! Group versions registered in upstream's schemes, served or not: `DeleteOptions` and `WatchEvent` are kinds of each of them.
//!
//! The data is that of 1.36, ordered by `group/version` as upstream.

use portico_machinery::GroupVersion;

/// Group versions of client-go, which documents of custom resources contain.
const CLIENT: &[(&str, &[&str])] = &[
    ("", &["v1"]),
    ("admissionregistration.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("apps", &["v1", "v1beta1", "v1beta2"]),
    ("authentication.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("authorization.k8s.io", &["v1", "v1beta1"]),
    ("autoscaling", &["v1", "v2"]),
    ("batch", &["v1", "v1beta1"]),
    ("certificates.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("coordination.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    ("discovery.k8s.io", &["v1", "v1beta1"]),
    ("events.k8s.io", &["v1", "v1beta1"]),
    ("extensions", &["v1beta1"]),
    ("flowcontrol.apiserver.k8s.io", &["v1", "v1beta1", "v1beta2", "v1beta3"]),
    ("internal.apiserver.k8s.io", &["v1alpha1"]),
    ("networking.k8s.io", &["v1", "v1beta1"]),
    ("node.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("policy", &["v1", "v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("resource.k8s.io", &["v1", "v1alpha3", "v1beta1", "v1beta2"]),
    ("scheduling.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    ("storage.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("storagemigration.k8s.io", &["v1beta1"]),
];

/// Further group versions that only the server registers.
const SERVER: &[(&str, &[&str])] = &[
    ("admission.k8s.io", &["v1", "v1beta1"]),
    ("apiextensions.k8s.io", &["v1", "v1beta1"]),
    ("apiregistration.k8s.io", &["v1", "v1beta1"]),
    ("imagepolicy.k8s.io", &["v1alpha1"]),
];

/// Returns the group versions of client-go.
pub(super) fn client_group_versions() -> Vec<GroupVersion> {
    group_versions(CLIENT).collect()
}

/// Returns the group versions of client-go and the server.
pub(super) fn server_group_versions() -> Vec<GroupVersion> {
    let mut all: Vec<GroupVersion> = group_versions(CLIENT).chain(group_versions(SERVER)).collect();
    all.sort_by(|a, b| (&a.group, &a.version).cmp(&(&b.group, &b.version)));
    all
}

fn group_versions(rows: &'static [(&str, &[&str])]) -> impl Iterator<Item = GroupVersion> {
    rows.iter()
        .flat_map(|(group, versions)| versions.iter().map(|version| GroupVersion::new(*group, *version)))
}
