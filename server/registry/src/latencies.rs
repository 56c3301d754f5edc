//! Durations of the parts of a request, for its audit event and for metrics (upstream's `LatencyTrackers`). The writer of the
//! event knows the total duration, and omits these durations for fast requests.

use std::time::Duration;

use portico_gostd::time::format_duration;
use portico_kit::slow_trace::{self, PartTimes};

use crate::verb_types::Annotations;

/// Trace name of the commit of a write.
pub const COMMIT: &str = "Commit transaction";
/// Trace name of calls of mutating webhooks.
pub const MUTATING_WEBHOOK: &str = "Call mutating webhook";
/// Trace name of calls of validating webhooks.
pub const VALIDATING_WEBHOOK: &str = "Call validating webhook";

/// Records the durations of the parts that have ended in the polled task: those of webhooks always, all others if
/// the request is recorded.
pub fn record_durations(annotations: &Annotations, recorded: bool) {
    for (part, times) in slow_trace::part_times() {
        let Some((key, took)) = audit_latency(part, times) else { continue };
        if part != COMMIT {
            annotations.add_webhook_duration(took);
        }
        if recorded {
            annotations.note(format!("apiserver.latency.k8s.io/{key}"), format_duration(took));
        }
    }
}

/// Key in the audit event (upstream's name `etcd` for every store) and duration. Validating webhooks run concurrently.
fn audit_latency(part: &str, times: PartTimes) -> Option<(&'static str, Duration)> {
    match part {
        COMMIT => Some(("etcd", times.sum)),
        MUTATING_WEBHOOK => Some(("mutating-webhook", times.sum)),
        VALIDATING_WEBHOOK => Some(("validating-webhook", times.longest)),
        _ => None,
    }
}
