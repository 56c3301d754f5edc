//! How a quota counts what is used.

use portico_machinery::Object;
use portico_quota::Amounts;

/// Who counts, among the managers of a quota's fields.
pub(super) const MANAGER: &str = "kube-apiserver";

/// Counts so much more as used.
pub(super) fn count(quota: &mut Object, taken: &Amounts) {
    for (name, amount) in taken {
        let used = quota.at(&["status", "used"]).key(name).quantity().unwrap_or_default();
        quota.set(&["status", "used", name], (used + amount).to_string());
    }
}
