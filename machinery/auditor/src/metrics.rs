//! Audit metrics, mostly those of kube-apiserver.

use portico_audit::Level;
use portico_kit::metrics::{Desc, Registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

type Label = [(&'static str, &'static str); 1];

/// `apiserver_audit_*`
#[derive(Clone)]
pub(super) struct AuditMetrics {
    /// Number of encoded events.
    pub(super) events: Counter,
    /// Number of requests that were refused because their event could not be stored.
    pub(super) rejected: Counter,
    errors: Family<Label, Counter>,
    waiting: Family<Label, Gauge>,
    levels: [Counter; 4],
}

impl AuditMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let levels: Family<Label, Counter> = registry.counter_vec(Desc::counter(
            "apiserver_audit_level_total",
            &["level"],
            "[ALPHA] Counter of policy levels for audit events (1 per request).",
        ));
        let events = registry.counter(Desc::counter(
            "apiserver_audit_event_total",
            &[],
            "[ALPHA] Counter of audit events generated and sent to the audit backend.",
        ));
        let rejected = registry.counter(Desc::counter(
            "apiserver_audit_requests_rejected_total",
            &[],
            "[ALPHA] Counter of apiserver requests rejected due to an error in audit \
             logging backend.",
        ));
        Self {
            events,
            rejected,
            errors: registry.counter_vec(Desc::counter(
                "apiserver_audit_error_total",
                &["plugin"],
                "[ALPHA] Counter of audit events that failed to be audited properly. Plugin \
                 identifies the plugin affected by the error.",
            )),
            waiting: registry.gauge_vec(Desc::gauge(
                "portico_audit_waiting_events",
                &["plugin"],
                "Audit events in the blocking modes that wait for the backend or for space in \
                 its queue",
            )),
            levels: Level::ALL.map(|level| levels.get_or_create_owned(&[("level", level.as_str())])),
        }
    }

    /// Counts a request recorded at this level.
    pub(super) fn count_level(&self, level: Level) {
        self.levels[level as usize].inc();
    }

    /// Returns the gauge of events that wait for the backend.
    pub(super) fn waiting_gauge(&self, plugin: &'static str) -> Gauge {
        self.waiting.get_or_create_owned(&[("plugin", plugin)])
    }

    /// Counts and logs lost events.
    pub(super) fn count_lost(&self, plugin: &'static str, events: usize, reason: &str) {
        self.errors.get_or_create_owned(&[("plugin", plugin)]).inc_by(events as u64);
        tracing::error!(plugin, events, error = reason, "audit events are lost");
    }
}
