//! Durations of the parts of a request, for its audit event and for metrics (upstream's `LatencyTrackers`). The writer of the
//! event knows the total duration, and omits these durations for fast requests.

use std::time::Duration;

use portico_gostd::time::format_duration;
use portico_kit::slow_trace::{self, Times};

use crate::typed::Annotations;

/// Trace name of the commit of a write.
pub const COMMIT: &str = "Commit transaction";
/// Trace name of calls of mutating webhooks.
pub const MUTATING_WEBHOOK: &str = "Call mutating webhook";
/// Trace name of calls of validating webhooks.
pub const VALIDATING_WEBHOOK: &str = "Call validating webhook";

/// Records the durations of the parts that have ended in the polled task: those of webhooks always, all others if
/// the request is recorded.
pub fn note(annotations: &Annotations, recorded: bool) {
    for (part, times) in slow_trace::times() {
        let Some((key, took)) = latency(part, times) else { continue };
        if part != COMMIT {
            annotations.webhooks_took(took);
        }
        if recorded {
            annotations.note(format!("apiserver.latency.k8s.io/{key}"), format_duration(took));
        }
    }
}

/// Key in the audit event (upstream's name `etcd` for every store) and duration. Validating webhooks run concurrently.
fn latency(part: &str, times: Times) -> Option<(&'static str, Duration)> {
    match part {
        COMMIT => Some(("etcd", times.sum)),
        MUTATING_WEBHOOK => Some(("mutating-webhook", times.sum)),
        VALIDATING_WEBHOOK => Some(("validating-webhook", times.longest)),
        _ => None,
    }
}
