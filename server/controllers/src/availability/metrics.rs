//! Metrics `aggregator_unavailable_apiservice` and `aggregator_unavailable_apiservice_total`.

use portico_kit::metrics::{Desc, Registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

type Name = [(&'static str, String); 1];
type NameReason = [(&'static str, String); 2];

/// Both metric families. The gauge of an APIService is removed with it.
#[derive(Clone)]
pub struct Metrics {
    unavailable: Family<Name, Gauge>,
    transitions: Family<NameReason, Counter>,
}

impl Metrics {
    /// Registers the metrics.
    #[must_use]
    pub fn new(registry: &Registry) -> Self {
        Self {
            unavailable: registry.gauge_vec(Desc::gauge(
                "aggregator_unavailable_apiservice",
                &["name"],
                "[ALPHA] Gauge of APIServices which are marked as unavailable broken down by \
                 APIService name.",
            )),
            transitions: registry.counter_vec(Desc::counter(
                "aggregator_unavailable_apiservice_total",
                &["name", "reason"],
                "[ALPHA] Counter of APIServices which are marked as unavailable broken down by \
                 APIService name and reason.",
            )),
        }
    }

    /// Sets the gauge to the latest decision, whether or not the condition is written.
    pub fn record_decision(&self, name: &str, available: bool) {
        self.unavailable.get_or_create(&[("name", name.to_owned())]).set(i64::from(!available));
    }

    /// Counts a written change from `True` to another status.
    pub fn count_unavailable(&self, name: &str, reason: &str) {
        let reason = if reason.is_empty() { "UnknownReason" } else { reason };
        self.transitions.get_or_create(&[("name", name.to_owned()), ("reason", reason.to_owned())]).inc();
    }

    /// Removes the gauge of a deleted APIService.
    pub fn forget(&self, name: &str) {
        self.unavailable.remove(&[("name", name.to_owned())]);
    }
}
