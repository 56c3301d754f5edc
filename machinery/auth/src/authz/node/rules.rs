//! Permissions of all nodes (upstream's NodeRules).
//!
//! Resources that are decided by the graph or by name are omitted, because their rules would never be evaluated.

use std::sync::LazyLock;

use portico_machinery::rbac::Rule;

const READ: &str = "get list watch";

/// Verbs, groups and resources, separated by blanks; `core` is the group without a name.
const TABLE: [(&str, &str, &str); 9] = [
    ("create", "authentication.k8s.io", "tokenreviews"),
    ("create", "authorization.k8s.io", "subjectaccessreviews localsubjectaccessreviews"),
    (READ, "core", "services"),
    ("create update patch", "core events.k8s.io", "events"),
    ("get", "core", "endpoints"),
    ("create get list watch", "certificates.k8s.io", "certificatesigningrequests"),
    (READ, "storage.k8s.io", "csidrivers"),
    (READ, "node.k8s.io", "runtimeclasses"),
    (READ, "certificates.k8s.io", "clustertrustbundles"),
];
/// Index of the last entry, which depends on a feature gate.
const GATED_INDEX: usize = TABLE.len() - 1;

/// Rules that always apply.
pub(super) static NODE_RULES: LazyLock<Vec<Rule>> =
    LazyLock::new(|| TABLE[..GATED_INDEX].iter().map(parse_rule).collect());

/// Rule of the feature gate `ClusterTrustBundle`.
pub(super) static TRUST_BUNDLES: LazyLock<Rule> = LazyLock::new(|| parse_rule(&TABLE[GATED_INDEX]));

fn parse_rule((verbs, groups, resources): &(&str, &str, &str)) -> Rule {
    let words = |text: &str| {
        let words = text.split(' ').map(|word| if word == "core" { "" } else { word }.to_owned());
        words.collect()
    };
    Rule { verbs: words(verbs), api_groups: words(groups), resources: words(resources), ..Rule::default() }
}
