//! Registry for all metrics of a process, exposed under the names that kube-apiserver uses.
//!
//! Modules register a family by its [`Desc`]; registering a name twice returns the same family, so that both halves of an
//! all-in-one process can register it. Does not depend on HTTP or on what the metrics count.

mod choice;
mod constants;
mod desc;
mod histogram;
mod process;
mod summary;
mod text;

pub use choice::MetricChoice;
pub use desc::Desc;
pub use histogram::Histogram;
pub use process::{process_started, resident_bytes};
pub use summary::{Summary, SummaryVec};
pub use text::Format;

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry as Inner};

/// Number of hidden metrics.
const HIDDEN: Desc = Desc::counter("hidden_metrics_total", &[], "[BETA] The count of hidden metrics.");
/// Number of observations with a label value that [`MetricChoice`] does not allow; computed when all metrics are encoded.
const UNEXPECTED: Desc = Desc::counter(
    "cardinality_enforcement_unexpected_categorizations_total",
    &[],
    "[ALPHA] The count of unexpected categorizations during cardinality \
     enforcement.",
);
/// Number of metrics that [`MetricChoice`] disables.
const DISABLED: Desc = Desc::counter("disabled_metrics_total", &[], "[BETA] The count of disabled metrics.");

/// Bounds of a label set, which `[(&'static str, String); N]` satisfies.
pub trait Labels: Clone + Hash + Eq + EncodeLabelSet + Debug + Send + Sync + 'static {}
impl<T: Clone + Hash + Eq + EncodeLabelSet + Debug + Send + Sync + 'static> Labels for T {}

/// Family of histograms with the same buckets.
pub type HistogramVec<L> = Family<L, Histogram, Buckets>;

/// Gauge with a floating-point value.
pub type FloatGauge = Gauge<f64, std::sync::atomic::AtomicU64>;

/// Upper bounds of the buckets of a histogram, ascending, without infinity.
#[derive(Debug, Clone, Copy)]
pub struct Buckets(pub &'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0)
    }
}

/// Metrics of the process. Clones share them.
#[derive(Clone, Default)]
pub struct Registry {
    inner: Arc<Mutex<RegistryState>>,
    choice: Arc<MetricChoice>,
}

#[derive(Default)]
struct RegistryState {
    registry: Inner,
    metrics: HashMap<String, Box<dyn Any + Send>>,
    /// Counters whose upstream name does not end in `_total`.
    bare_counters: HashSet<String>,
    /// Names of summaries, for which the library has no type.
    summaries: HashSet<String>,
}

impl Registry {
    /// Returns a registry without metrics.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a registry with the metrics of the process (`process_resident_memory_bytes` and so on), which exposes those that
    /// `choice` selects.
    pub fn for_process(choice: MetricChoice) -> Self {
        let registry = Self { choice: Arc::new(choice), ..Self::default() };
        registry.register_collector(Box::new(process::ProcessCollector::new()));
        registry.counter(HIDDEN);
        registry.counter(UNEXPECTED);
        let disabled = registry.counter(DISABLED);
        disabled.inc_by(registry.choice.disabled.len().try_into().unwrap_or(u64::MAX));
        registry
    }

    /// Returns a registry with the metrics of the process, which exposes all metrics.
    pub fn with_process_metrics() -> Self {
        Self::for_process(MetricChoice::default())
    }

    /// Returns an empty registry with the same choice of exposed metrics.
    pub fn new_sibling(&self) -> Self {
        Self { choice: self.choice.clone(), ..Self::default() }
    }

    /// Exposes `metric` under a second name, which upstream deprecated in the release `deprecated` and hides: it is exposed only
    /// if hidden metrics are shown.
    pub fn register_hidden<M: Metric + Clone>(&self, desc: Desc, deprecated: &str, metric: M) {
        self.counter(HIDDEN).inc();
        if self.choice.show_hidden {
            let help = format!("(Deprecated since {deprecated}) {}", desc.help);
            self.get_or_register_as(desc.name, desc.base(), &help, || metric.clone());
        }
    }

    /// Registers a gauge with constant values: one series for each row, with two labels.
    pub fn register_constants(&self, desc: Desc, rows: Vec<constants::Row>) {
        self.register_collector(Box::new(constants::Constants { desc, rows }));
    }

    /// Registers counters by label set.
    pub fn counter_vec<L: Labels>(&self, desc: Desc) -> Family<L, Counter> {
        self.note_bare_counter(desc.name);
        self.get_or_register(desc, Family::default)
    }

    /// Registers a counter.
    pub fn counter(&self, desc: Desc) -> Counter {
        self.note_bare_counter(desc.name);
        self.get_or_register(desc, Counter::default)
    }

    /// Registers gauges by label set.
    pub fn gauge_vec<L: Labels>(&self, desc: Desc) -> Family<L, Gauge> {
        self.get_or_register(desc, Family::default)
    }

    /// Registers a gauge.
    pub fn gauge(&self, desc: Desc) -> Gauge {
        self.get_or_register(desc, Gauge::default)
    }

    /// Registers floating-point gauges by label set.
    pub fn float_gauge_vec<L: Labels>(&self, desc: Desc) -> Family<L, FloatGauge> {
        self.get_or_register(desc, Family::default)
    }

    /// Registers histograms by label set.
    pub fn histogram_vec<L: Labels>(&self, desc: Desc, buckets: &'static [f64]) -> HistogramVec<L> {
        self.get_or_register(desc, || Family::new_with_constructor(Buckets(buckets)))
    }

    /// Registers a histogram.
    pub fn histogram(&self, desc: Desc, buckets: &'static [f64]) -> Histogram {
        self.get_or_register(desc, || Buckets(buckets).new_metric())
    }

    /// Registers summaries by label set; their quantiles cover values that are at most `max_age` old.
    pub fn summary_vec<L: Labels>(&self, desc: Desc, max_age: Duration) -> SummaryVec<L> {
        self.inner.lock().summaries.insert(desc.name.to_owned());
        self.get_or_register(desc, || SummaryVec::new(max_age))
    }

    /// Registers a collector, which is called at each scrape.
    pub fn register_collector(&self, collector: Box<dyn Collector>) {
        self.inner.lock().registry.register_collector(collector);
    }

    /// Encodes all metrics as text in `format`, which [`Format::from_accept`] returns.
    pub fn encode(&self, format: Format) -> String {
        let mut text = String::with_capacity(16 * 1024);
        let state = self.inner.lock();
        if let Err(error) = prometheus_client::encoding::text::encode(&mut text, &state.registry) {
            tracing::error!(%error, "cannot encode metrics");
        }
        text::set_summary_types(&mut text, &state.summaries);
        if !self.choice.exposes_all() {
            let (filtered, unexpected) = self.choice.apply(&text, &state.bare_counters);
            text = filtered.replacen(
                &format!("\n{} 0\n", UNEXPECTED.name),
                &format!("\n{} {unexpected}\n", UNEXPECTED.name),
                1,
            );
        }
        match format {
            Format::OpenMetrics => text,
            Format::Text => text::from_open_metrics(&text, &state.bare_counters),
        }
    }

    fn note_bare_counter(&self, name: &str) {
        if !name.ends_with("_total") {
            self.inner.lock().bare_counters.insert(name.to_owned());
        }
    }

    pub(crate) fn get_or_register<M: Metric + Clone>(&self, desc: Desc, make: impl Fn() -> M) -> M {
        self.get_or_register_as(desc.name, desc.base(), desc.help, make)
    }

    fn get_or_register_as<M: Metric + Clone>(
        &self,
        name: &str,
        base: &str,
        help: &str,
        make: impl Fn() -> M,
    ) -> M {
        let mut state = self.inner.lock();
        if let Some(known) = state.metrics.get(name) {
            return known.downcast_ref().cloned().unwrap_or_else(|| {
                // The metric counts but is not exposed: a second type under one name would make the whole output invalid.
                tracing::error!(name, "metric registered twice with different types");
                make()
            });
        }
        let metric = make();
        // The registry appends a period.
        state.registry.register(base, help.strip_suffix('.').unwrap_or(help), metric.clone());
        state.metrics.insert(name.to_owned(), Box::new(metric.clone()));
        metric
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_one_series_per_row() {
        let registry = Registry::new();
        registry.register_constants(
            Desc::gauge("x_enabled", &["name", "stage"], "X"),
            vec![(["A", "BETA"], 1), (["B", ""], 0)],
        );
        let text = registry.encode(Format::Text);
        assert!(
            text.contains("x_enabled{name=\"A\",stage=\"BETA\"} 1\nx_enabled{name=\"B\",stage=\"\"} 0\n"),
            "{text}"
        );
    }

    type Name = [(&'static str, String); 1];

    #[test]
    fn names_are_exposed_exactly_as_registered() {
        let registry = Registry::new();
        let total = registry.counter_vec::<Name>(Desc::counter(
            "aggregator_unavailable_apiservice_total",
            &["name"],
            "Transitions",
        ));
        total.get_or_create(&[("name", "v1.a".to_owned())]).inc();
        registry
            .counter(Desc::counter("aggregator_openapi_v2_regeneration_count", &[], "Regenerations"))
            .inc();
        registry.gauge(Desc::gauge("workqueue_depth", &[], "Depth")).set(3);
        registry.histogram(Desc::histogram("wait_seconds", &[], "Wait"), &[0.1, 1.0]).observe(0.5);
        let expected = "# HELP aggregator_unavailable_apiservice_total Transitions.\n\
            # TYPE aggregator_unavailable_apiservice_total counter\n\
            aggregator_unavailable_apiservice_total{name=\"v1.a\"} 1\n\
            # HELP aggregator_openapi_v2_regeneration_count Regenerations.\n\
            # TYPE aggregator_openapi_v2_regeneration_count counter\n\
            aggregator_openapi_v2_regeneration_count 1\n\
            # HELP workqueue_depth Depth.\n# TYPE workqueue_depth gauge\nworkqueue_depth 3\n\
            # HELP wait_seconds Wait.\n# TYPE wait_seconds histogram\n\
            wait_seconds_sum 0.5\nwait_seconds_count 1\n\
            wait_seconds_bucket{le=\"0.1\"} 0\nwait_seconds_bucket{le=\"1.0\"} 1\nwait_seconds_bucket{le=\"+Inf\"} 1\n";
        assert_eq!(registry.encode(Format::Text), expected);
    }

    #[test]
    fn registering_again_returns_the_same_metric_and_another_type_is_not_exposed() {
        let registry = Registry::new();
        registry.counter(Desc::counter("x_total", &[], "X")).inc();
        registry.counter(Desc::counter("x_total", &[], "X")).inc();
        registry.gauge(Desc::gauge("x_total", &[], "X")).set(9);
        let text = registry.encode(Format::Text);
        assert!(text.ends_with("\nx_total 2\n"), "{text}");
    }

    #[test]
    fn a_summary_is_its_quantiles_its_sum_and_its_count() {
        let registry = Registry::new();
        let summaries = registry.summary_vec::<Name>(
            Desc::summary("x_seconds_summary", &["name"], "X"),
            Duration::from_secs(3_600),
        );
        assert_eq!(registry.encode(Format::Text), "");
        let summary = summaries.get_or_create(&[("name", "a".to_owned())]);
        for value in [1.0, 2.0, 4.0] {
            summary.observe(value);
        }
        let samples = "x_seconds_summary{name=\"a\",quantile=\"0.5\"} 2.03125\n\
            x_seconds_summary{name=\"a\",quantile=\"0.9\"} 4.0625\n\
            x_seconds_summary{name=\"a\",quantile=\"0.99\"} 4.0625\n\
            x_seconds_summary_sum{name=\"a\"} 7.0\nx_seconds_summary_count{name=\"a\"} 3\n";
        let described = format!("# HELP x_seconds_summary X.\n# TYPE x_seconds_summary summary\n{samples}");
        assert_eq!(registry.encode(Format::Text), described);
        assert_eq!(registry.encode(Format::OpenMetrics), format!("{described}# EOF\n"));
    }

    #[test]
    fn open_metrics_ends_with_eof() {
        let registry = Registry::new();
        registry.counter(Desc::counter("x_total", &[], "X")).inc();
        let text = registry.encode(Format::OpenMetrics);
        assert_eq!(text, "# HELP x X.\n# TYPE x counter\nx_total 1\n# EOF\n");
    }

    #[test]
    fn the_process_describes_itself() {
        let text = Registry::with_process_metrics().encode(Format::Text);
        for name in [
            "process_resident_memory_bytes",
            "process_start_time_seconds",
            "process_cpu_seconds_total",
            "process_open_fds",
        ] {
            let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_default();
            let value: f64 = line.rsplit(' ').next().unwrap().parse().unwrap_or(-1.0);
            let least = if name == "process_cpu_seconds_total" { 0.0 } else { 1.0 };
            assert!(value >= least, "{name}: {line:?}");
        }
    }
}
