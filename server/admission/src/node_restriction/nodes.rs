//! Nodes: a kubelet may register its own node and update its status, without taints, owners and labels that steer workloads.

use std::collections::BTreeMap;

use portico_machinery::{Cursor, Object};
use portico_registry::{Operation, Result};

use super::node_request::NodeRequest;

/// Kubernetes labels that a kubelet may set (upstream's `kubeletLabels`).
const KUBELET_LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
/// Label domains in which a kubelet may set labels.
const KUBELET_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
/// Label domain in which no kubelet may set labels.
const RESTRICTED_DOMAIN: &str = "node-restriction.kubernetes.io";

/// Checks a write of a node or of its subresources (upstream's `admitNode`).
pub(super) fn check(node_request: &NodeRequest<'_>, node: &str) -> Result<()> {
    let refused = |message: String| Err(node_request.forbidden(&message));
    if node_request.name() != node {
        return refused(format!("node {node:?} is not allowed to modify node {:?}", node_request.name()));
    }
    match (node_request.attributes.operation, node_request.new, node_request.old) {
        (Operation::Create, Some(new), _) => {
            if config_source(new).is_present() {
                return refused(format!(
                    "node {node:?} is not allowed to create pods with a non-nil configSource"
                ));
            }
            match forbidden_labels(&new.labels(), &BTreeMap::new()).as_str() {
                "" => Ok(()),
                labels => {
                    refused(format!("node {node:?} is not allowed to set the following labels: {labels}"))
                }
            }
        }
        (Operation::Update, Some(new), Some(old)) => check_update(node_request, node, new, old),
        _ => Ok(()),
    }
}

fn check_update(node_request: &NodeRequest<'_>, node: &str, new: &Object, old: &Object) -> Result<()> {
    let refused = |message: String| Err(node_request.forbidden(&message));
    if config_source(new).is_present() && !config_source(new).same_as(&config_source(old)) {
        return refused(format!(
            "node {node:?} is not allowed to update configSource to a new non-nil configSource"
        ));
    }
    for (path, field) in
        [(["spec", "taints"], "taints"), (["metadata", "ownerReferences"], "ownerReferences")]
    {
        if !is_same_list(&new.at(&path), &old.at(&path)) {
            return refused(format!("node {node:?} is not allowed to modify {field}"));
        }
    }
    match forbidden_labels(&new.labels(), &old.labels()).as_str() {
        "" => Ok(()),
        labels => refused(format!("is not allowed to modify labels: {labels}")),
    }
}

fn config_source(node: &Object) -> Cursor<'_> {
    node.at(&["spec", "configSource"])
}

/// True if two lists are equal; a missing list equals an empty one.
fn is_same_list(new: &Cursor<'_>, old: &Cursor<'_>) -> bool {
    new.is_empty() && old.is_empty() || new.same_as(old)
}

/// Returns the differing labels that a kubelet may not change, sorted.
fn forbidden_labels(new: &BTreeMap<String, String>, old: &BTreeMap<String, String>) -> String {
    let differs = |label: &&String| new.get(*label) != old.get(*label);
    let mut labels: Vec<&str> = new
        .keys()
        .chain(old.keys())
        .filter(differs)
        .map(String::as_str)
        .filter(|label| is_forbidden(label))
        .collect();
    labels.sort_unstable();
    labels.dedup();
    labels.join(", ")
}

fn is_forbidden(label: &str) -> bool {
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let is_kubernetes_label = is_in_domain(domain, "kubernetes.io") || is_in_domain(domain, "k8s.io");
    let is_kubelet_label = KUBELET_LABELS.contains(&label)
        || KUBELET_DOMAINS.iter().any(|allowed| is_in_domain(domain, allowed));
    is_in_domain(domain, RESTRICTED_DOMAIN) || is_kubernetes_label && !is_kubelet_label
}

/// True if a domain equals `parent` or is below it.
fn is_in_domain(domain: &str, parent: &str) -> bool {
    domain.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_may_not_change_labels_that_steer_workloads() {
        for (label, forbidden) in [
            ("kubernetes.io/hostname", false),
            ("topology.kubernetes.io/zone", false),
            ("node.kubernetes.io/anything", false),
            ("x.kubelet.kubernetes.io/anything", false),
            ("example.com/role", false),
            ("plain", false),
            ("notkubernetes.io/x", false),
            ("kubernetes.io/role", true),
            ("node-role.kubernetes.io/control-plane", true),
            ("x.k8s.io/y", true),
            ("node-restriction.kubernetes.io/x", true),
            ("a.node-restriction.kubernetes.io/x", true),
        ] {
            assert_eq!(is_forbidden(label), forbidden, "{label}");
        }
        let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let old = labels(&[("k8s.io/a", "1"), ("k8s.io/b", "1"), ("k8s.io/c", "1")]);
        let new = labels(&[("k8s.io/d", "1"), ("k8s.io/b", "1"), ("k8s.io/a", "2"), ("x", "y")]);
        assert_eq!(forbidden_labels(&new, &old), "k8s.io/a, k8s.io/c, k8s.io/d");
    }
}
