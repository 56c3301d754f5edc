//! Where the time of a request went, for its audit event and for metrics (upstream's `LatencyTrackers`). Only who writes the
//! event knows whether the whole was slow: it leaves these out of others.

use std::time::Duration;

use portico_gostd::time::format_duration;
use portico_kit::slow_trace::{self, Times};

use crate::typed::Annotations;

/// What traces call the store's part of a write.
pub const COMMIT: &str = "Commit transaction";
/// What they call a mutating webhook's part.
pub const MUTATING_WEBHOOK: &str = "Call mutating webhook";
/// What they call a validating webhook's part.
pub const VALIDATING_WEBHOOK: &str = "Call validating webhook";

/// Notes how long the parts took that have ended in the work that is being polled: of webhooks always, of all where the request
/// is recorded.
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

/// The key in the event, under upstream's name for the store whichever it is. Validating webhooks are asked at the same time.
fn latency(part: &str, times: Times) -> Option<(&'static str, Duration)> {
    match part {
        COMMIT => Some(("etcd", times.sum)),
        MUTATING_WEBHOOK => Some(("mutating-webhook", times.sum)),
        VALIDATING_WEBHOOK => Some(("validating-webhook", times.longest)),
        _ => None,
    }
}
