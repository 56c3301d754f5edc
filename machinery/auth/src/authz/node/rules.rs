//! What every node may do, whichever node it is (upstream's NodeRules).
//!
//! Resources that the graph or a name decides about are not here: their rules would never be asked.

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
/// The last one stands under a feature gate.
const GATED: usize = TABLE.len() - 1;

/// The rules that are always in force.
pub(super) static ALL: LazyLock<Vec<Rule>> = LazyLock::new(|| TABLE[..GATED].iter().map(rule).collect());

/// Under `ClusterTrustBundle`.
pub(super) static TRUST_BUNDLES: LazyLock<Rule> = LazyLock::new(|| rule(&TABLE[GATED]));

fn rule((verbs, groups, resources): &(&str, &str, &str)) -> Rule {
    let words = |text: &str| {
        let words = text.split(' ').map(|word| if word == "core" { "" } else { word }.to_owned());
        words.collect()
    };
    Rule { verbs: words(verbs), api_groups: words(groups), resources: words(resources), ..Rule::default() }
}
