//! Logs problems of manifests, and objects whose manifests were removed.

use crate::document::Fault;

/// Faults that the log names for one pass.
///
/// Limit (Manifests): the rest is counted.
pub(crate) const MAX_LOGGED: usize = 20;

/// Logs the faults that are not in `before`, and returns their number.
pub(crate) fn faults(faults: &[Fault], previous: &[Fault]) -> usize {
    let new: Vec<&Fault> = faults.iter().filter(|fault| !previous.contains(fault)).collect();
    for fault in new.iter().take(MAX_LOGGED) {
        tracing::error!(
            manifest = %fault.origin,
            object = fault.object,
            error = fault.message,
            "cannot apply a manifest"
        );
    }
    new.len()
}

/// Logs warnings.
pub(crate) fn warnings(warnings: &[Fault]) {
    for warning in warnings.iter().take(MAX_LOGGED) {
        tracing::warn!(
            manifest = %warning.origin,
            object = warning.object,
            warning = warning.message,
            "manifest applied with a warning"
        );
    }
}

/// Logs the objects that remain although their manifests were removed, unless the list equals `before`.
pub(crate) fn remaining(remaining: &[String], previous: &[String]) {
    if !remaining.is_empty() && remaining != previous {
        let objects = remaining.iter().take(MAX_LOGGED).cloned().collect::<Vec<_>>().join(", ");
        tracing::warn!(count = remaining.len(), objects, "objects without a manifest remain");
    }
}
