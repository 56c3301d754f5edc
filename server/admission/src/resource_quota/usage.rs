//! Updates of the usage in a quota's status.

use portico_machinery::Object;
use portico_quota::ResourceList;

/// Field manager of the usage in a quota's status.
pub(super) const MANAGER: &str = "kube-apiserver";

/// Adds amounts to the usage.
pub(super) fn add_usage(quota: &mut Object, amounts: &ResourceList) {
    for (name, amount) in amounts {
        let used = quota.at(&["status", "used"]).key(name).quantity().unwrap_or_default();
        quota.set(&["status", "used", name], (used + amount).to_string());
    }
}
