//! Request metrics under upstream's names (15), with labels whose number clients cannot increase without limit.
//!
//! Series are looked up once per request by a borrowed key; after that all updates are atomic. Does not depend on filters, nor
//! on how requests are served.

pub mod access;
mod totals;

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use portico_flow::{RequestKind, RequestPhase};
use portico_kit::metrics::{Desc, Histogram, HistogramVec, Registry};
use portico_machinery::RequestInfo;
use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::console_paths;

pub use totals::Totals;

/// Distinct label sets of request metrics.
///
/// Limit (Serving): further requests are counted under empty labels.
const MAX_SERIES: usize = 8192;
/// Values of the label `dry_run`.
const DRY_RUNS: [&str; 3] = ["", "All", "invalid"];

const DURATIONS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];
/// Upstream's buckets for latencies that have objectives.
const OBJECTIVES: &[f64] = &[
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];
const SIZES: &[f64] = &[1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/// Labels of all request metrics, shared by the families that use them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct RequestLabels(Arc<LabelValues>);

#[derive(Debug, Default, PartialEq, Eq, Hash)]
struct LabelValues {
    verb: &'static str,
    group: Box<str>,
    version: Box<str>,
    resource: Box<str>,
    subresource: Box<str>,
    scope: &'static str,
    component: &'static str,
}

/// Request labels, and `All` for dry runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct DryRunLabels {
    request: RequestLabels,
    dry_run: &'static str,
}

/// Labels with the status code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct WithCode<L> {
    request: L,
    code: u16,
}

impl RequestLabels {
    fn verb(&self) -> (&'static str, &str) {
        ("verb", self.0.verb)
    }

    /// All labels except the verb, in upstream's order.
    fn other_labels(&self) -> [(&'static str, &str); 6] {
        let labels = &*self.0;
        [
            ("group", &labels.group),
            ("version", &labels.version),
            ("resource", &labels.resource),
            ("subresource", &labels.subresource),
            ("scope", labels.scope),
            ("component", labels.component),
        ]
    }
}

impl EncodeLabelSet for RequestLabels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        [self.verb()].encode(encoder)?;
        self.other_labels().encode(encoder)
    }
}

/// The label `dry_run` has upstream's position.
impl EncodeLabelSet for DryRunLabels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        [self.request.verb(), ("dry_run", self.dry_run)].encode(encoder)?;
        self.request.other_labels().encode(encoder)
    }
}

impl<L: EncodeLabelSet> EncodeLabelSet for WithCode<L> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        self.request.encode(encoder)?;
        [("code", self.code.to_string())].encode(encoder)
    }
}

/// Series of one set of labels.
#[derive(Debug)]
struct Series {
    labels: RequestLabels,
    duration: Histogram,
    /// Latencies, for requests that have objectives.
    objective: Option<Histogram>,
    /// Response sizes, for reads.
    sizes: Option<Histogram>,
    /// Created by the first long-running request.
    longrunning: OnceLock<Gauge>,
    codes: Mutex<Vec<(u16, &'static str, Counter)>>,
    /// Codes of requests that were terminated.
    terminated: Mutex<Vec<u16>>,
}

/// Series of a request.
#[derive(Clone, Debug)]
pub struct RequestSeries {
    series: Arc<Series>,
    long_running: bool,
    dry_run: &'static str,
}

/// State of knowledge about the resource of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum KnownResource {
    /// The resource is not served: its name does not become a label.
    #[default]
    No,
    /// The backend has not confirmed the resource: it counts as served if it was confirmed for an earlier request.
    IfSeen,
    /// The resource is served.
    Yes,
}

/// Properties of a request that determine its labels.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredRequest<'a> {
    /// Verb, group, resource and so on.
    pub info: &'a RequestInfo,
    /// Server of the chain that responds: `apiserver` or `aggregator`.
    pub component: &'static str,
    /// State of knowledge about the resource: only names of served resources become labels.
    pub known_resource: KnownResource,
    /// True if the request is long-running.
    pub long_running: bool,
    /// `All`, `invalid`, or empty.
    pub dry_run: &'static str,
    /// True if a patch is a server-side apply.
    pub is_apply: bool,
}

/// Result of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestOutcome<'a> {
    /// Status code.
    pub code: u16,
    /// Time from the first byte of the request to the last byte of the response.
    pub took: Duration,
    /// Time that latency objectives exclude: webhooks, and waiting for a seat. Long-running requests have no objective.
    pub excluded: Duration,
    /// Size of the response body.
    pub bytes: u64,
    /// Release that removes the API, if it is deprecated; empty if unknown.
    pub deprecated: Option<&'a String>,
}

/// Marks a response with which a filter ended a request, for `apiserver_request_terminations_total`.
#[derive(Clone, Copy, Debug)]
pub struct Terminated;

/// The facade's request metrics.
pub struct RequestMetrics {
    total: Family<WithCode<DryRunLabels>, Counter>,
    terminations: Family<WithCode<RequestLabels>, Counter>,
    aborts: Family<RequestLabels, Counter>,
    duration: HistogramVec<DryRunLabels>,
    objective: HistogramVec<RequestLabels>,
    sizes: HistogramVec<RequestLabels>,
    longrunning: Family<RequestLabels, Gauge>,
    deprecated: Family<[(&'static str, String); 5], Gauge>,
    /// Gauges by phase and kind.
    max_concurrent: [[Gauge; 2]; 2],
    high_water: [[AtomicI64; 2]; 2],
    filter: HistogramVec<[(&'static str, String); 1]>,
    series: RwLock<HashMap<u64, Vec<Arc<Series>>>>,
    /// Counts requests that have no other series.
    overflow: OnceLock<Arc<Series>>,
    hasher: RandomState,
}

impl RequestMetrics {
    /// Registers the metrics.
    #[must_use]
    pub fn new(registry: &Registry) -> Arc<Self> {
        let at_a_time = |desc| {
            let gauges = registry.gauge_vec(desc);
            ["readOnly", "mutating"].map(|k| gauges.get_or_create_owned(&[("request_kind", k.to_owned())]))
        };
        Arc::new(Self {
            total: registry.counter_vec(Desc::counter(
                "apiserver_request_total",
                &[
                    "code",
                    "component",
                    "dry_run",
                    "group",
                    "resource",
                    "scope",
                    "subresource",
                    "verb",
                    "version",
                ],
                "[STABLE] Counter of apiserver requests broken out for each verb, dry run \
                 value, group, version, resource, scope, component, and HTTP response code.",
            )),
            terminations: registry.counter_vec(Desc::counter(
                "apiserver_request_terminations_total",
                &["code", "component", "group", "resource", "scope", "subresource", "verb", "version"],
                "[ALPHA] Number of requests which apiserver terminated in self-defense.",
            )),
            aborts: registry.counter_vec(Desc::counter(
                "apiserver_request_aborts_total",
                &["component", "group", "resource", "scope", "subresource", "verb", "version"],
                "[ALPHA] Number of requests which apiserver aborted possibly due to a timeout, \
                 for each group, version, verb, resource, subresource and scope",
            )),
            duration: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_request_duration_seconds",
                    &["component", "dry_run", "group", "resource", "scope", "subresource", "verb", "version"],
                    "[STABLE] Response latency distribution in seconds for each verb, dry run \
                     value, group, version, resource, subresource, scope and component.",
                ),
                DURATIONS,
            ),
            objective: objectives(registry),
            sizes: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_response_sizes",
                    &["component", "group", "resource", "scope", "subresource", "verb", "version"],
                    "[STABLE] Response size distribution in bytes for each group, version, verb, \
                     resource, subresource, scope and component.",
                ),
                SIZES,
            ),
            longrunning: registry.gauge_vec(Desc::gauge(
                "apiserver_longrunning_requests",
                &["component", "group", "resource", "scope", "subresource", "verb", "version"],
                "[STABLE] Gauge of all active long-running apiserver requests broken out by \
                 verb, group, version, resource, scope and component. Not all requests are \
                 tracked this way.",
            )),
            deprecated: registry.gauge_vec(Desc::gauge(
                "apiserver_requested_deprecated_apis",
                &["group", "removed_release", "resource", "subresource", "version"],
                "[STABLE] Gauge of deprecated APIs that have been requested, broken out by API \
                 group, version, resource, subresource, and removed_release.",
            )),
            max_concurrent: [
                at_a_time(Desc::gauge(
                    "apiserver_current_inflight_requests",
                    &["request_kind"],
                    "[STABLE] Maximal number of currently used inflight request limit of this \
                     apiserver per request kind in last second.",
                )),
                at_a_time(Desc::gauge(
                    "apiserver_current_inqueue_requests",
                    &["request_kind"],
                    "[ALPHA] Maximal number of queued requests in this apiserver per request kind \
                     in last second.",
                )),
            ],
            high_water: Default::default(),
            filter: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_request_filter_duration_seconds",
                    &["filter"],
                    "[ALPHA] Request filter latency distribution in seconds, for each filter type",
                ),
                &[0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0],
            ),
            series: RwLock::default(),
            overflow: OnceLock::new(),
            hasher: RandomState::new(),
        })
    }

    /// Returns the series of a request.
    #[must_use]
    pub fn labels(&self, request: &MeasuredRequest<'_>) -> RequestSeries {
        let series = match request.known_resource {
            KnownResource::No => self.series(request, false),
            KnownResource::IfSeen => self.find(request, true).unwrap_or_else(|| self.series(request, false)),
            KnownResource::Yes => self.series(request, true),
        };
        RequestSeries { series, long_running: request.long_running, dry_run: request.dry_run }
    }

    fn series(&self, request: &MeasuredRequest<'_>, is_known: bool) -> Arc<Series> {
        self.find(request, is_known).unwrap_or_else(|| {
            let info = request.info;
            let label = |text: &str| if is_known { text.into() } else { Box::default() };
            let labels = LabelValues {
                verb: verb_label(request),
                group: label(&info.api_group),
                version: label(&info.api_version),
                resource: label(&info.resource),
                subresource: label(&info.subresource),
                scope: info.scope(),
                component: request.component,
            };
            self.add(self.hash(request, is_known), RequestLabels(Arc::new(labels)))
        })
    }

    fn find(&self, request: &MeasuredRequest<'_>, is_known: bool) -> Option<Arc<Series>> {
        let (info, verb) = (request.info, verb_label(request));
        let matches_request = |s: &&Arc<Series>| {
            let l = &*s.labels.0;
            l.verb == verb
                && l.scope == info.scope()
                && l.component == request.component
                && (!is_known && l.resource.is_empty() && l.version.is_empty()
                    || *l.resource == *info.resource
                        && *l.group == *info.api_group
                        && *l.version == *info.api_version
                        && *l.subresource == *info.subresource)
        };
        self.series
            .read()
            .get(&self.hash(request, is_known))
            .and_then(|all| all.iter().find(matches_request).cloned())
    }

    fn hash(&self, request: &MeasuredRequest<'_>, is_known: bool) -> u64 {
        let (info, verb) = (request.info, verb_label(request));
        let key = (verb, &info.api_group, &info.api_version, &info.resource, &info.subresource);
        self.hasher.hash_one((is_known, info.scope(), request.component, is_known.then_some(key), verb))
    }

    fn add(&self, hash: u64, labels: RequestLabels) -> Arc<Series> {
        if self.series.read().len() >= MAX_SERIES {
            return self.overflow.get_or_init(|| self.create_series(RequestLabels::default())).clone();
        }
        let mut all = self.series.write();
        let bucket = all.entry(hash).or_default();
        // Another request can have added it in the meantime.
        if let Some(series) = bucket.iter().find(|series| series.labels == labels) {
            return series.clone();
        }
        let series = self.create_series(labels);
        bucket.push(series.clone());
        series
    }

    fn create_series(&self, labels: RequestLabels) -> Arc<Series> {
        let verb = labels.0.verb;
        let (has_objective, has_size) =
            (!matches!(verb, "WATCH" | "CONNECT"), matches!(verb, "GET" | "LIST"));
        Arc::new(Series {
            duration: self.duration.get_or_create_owned(&dry_run_labels(&labels, "")),
            objective: has_objective.then(|| self.objective.get_or_create_owned(&labels)),
            sizes: has_size.then(|| self.sizes.get_or_create_owned(&labels)),
            longrunning: OnceLock::new(),
            codes: Mutex::default(),
            terminated: Mutex::default(),
            labels,
        })
    }

    /// Drops the series of resources whose group version is no longer served, unless a request for them is in progress.
    pub fn retain(&self, is_served: impl Fn(&str, &str) -> bool) {
        self.series.write().retain(|_, bucket| {
            bucket.retain(|series| {
                let LabelValues { group, version, resource, .. } = &*series.labels.0;
                let is_retained =
                    resource.is_empty() || is_served(group, version) || Arc::strong_count(series) > 1;
                if !is_retained {
                    self.remove(series);
                }
                is_retained
            });
            !bucket.is_empty()
        });
    }

    fn remove(&self, series: &Series) {
        let labels = &series.labels;
        for dry_run in DRY_RUNS {
            self.duration.remove(&dry_run_labels(labels, dry_run));
        }
        self.objective.remove(labels);
        self.sizes.remove(labels);
        self.longrunning.remove(labels);
        self.aborts.remove(labels);
        for (code, dry_run, _) in series.codes.lock().drain(..) {
            self.total.remove(&WithCode { request: dry_run_labels(labels, dry_run), code });
        }
        for code in series.terminated.lock().drain(..) {
            self.terminations.remove(&WithCode { request: labels.clone(), code });
        }
    }

    /// Records that a request was answered and lasts until its body ends.
    pub fn record_start(&self, labels: &RequestSeries) {
        if labels.long_running {
            self.longrunning(labels).inc();
        }
    }

    /// Records the end of a request (upstream's `MonitorRequest`): objectives exclude dry runs, sizes are those of reads.
    pub fn record_end(&self, labels: &RequestSeries, outcome: &RequestOutcome<'_>) {
        let series = &labels.series;
        let took = outcome.took.as_secs_f64();
        if labels.dry_run.is_empty() {
            series.duration.observe(took);
        } else {
            self.duration.get_or_create(&dry_run_labels(&series.labels, labels.dry_run)).observe(took);
        }
        if let Some(objective) =
            series.objective.as_ref().filter(|_| labels.dry_run.is_empty() && !labels.long_running)
        {
            objective.observe(outcome.took.saturating_sub(outcome.excluded).as_secs_f64());
        }
        if let Some(sizes) = &series.sizes {
            #[expect(clippy::cast_precision_loss, reason = "a histogram of sizes needs no exact bytes")]
            sizes.observe(outcome.bytes as f64);
        }
        if let Some(removed) = outcome.deprecated {
            self.deprecated.get_or_create(&deprecated_labels(&series.labels, removed)).set(1);
        }
        self.code(labels, outcome.code).inc();
        if labels.long_running {
            self.longrunning(labels).dec();
        }
    }

    /// Records that the server terminated a request before it was answered.
    pub fn record_termination(&self, labels: &RequestSeries, code: u16) {
        let request = labels.series.labels.clone();
        self.terminations.get_or_create(&WithCode { request, code }).inc();
        let mut codes = labels.series.terminated.lock();
        if !codes.contains(&code) {
            codes.push(code);
        }
    }

    /// Records that a response ended with an error.
    pub fn record_abort(&self, labels: &RequestSeries) {
        self.aborts.get_or_create(&labels.series.labels).inc();
    }

    /// Records the number of requests of a kind that run or wait. The gauge shows the maximum since its last update.
    pub fn record_concurrency(&self, phase: RequestPhase, kind: RequestKind, count: usize) {
        let mark = &self.high_water[phase as usize][kind as usize];
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        // Most values are lower, and a load does not invalidate the cache line of other threads.
        if count > mark.load(Ordering::Relaxed) {
            mark.fetch_max(count, Ordering::Relaxed);
        }
    }

    /// Moves the high-water marks into the gauges; called once a second, as upstream does.
    pub fn take_high_water(&self, counts: [[usize; 2]; 2]) {
        let high_water_gauges = self.high_water.as_flattened().iter().zip(self.max_concurrent.as_flattened());
        for (current, (mark, gauge)) in counts.as_flattened().iter().zip(high_water_gauges) {
            let current = i64::try_from(*current).unwrap_or(i64::MAX);
            gauge.set(mark.swap(current, Ordering::Relaxed).max(current));
        }
    }

    /// Sums over all requests since the start.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for series in self.series.read().values().flatten() {
            for (code, _, counter) in series.codes.lock().iter() {
                let class = usize::from(code / 100).clamp(1, totals.codes.len()) - 1;
                totals.codes[class] += counter.get();
            }
            totals.long_running += series.longrunning.get().map_or(0, |gauge| gauge.get());
            if !matches!(series.labels.0.verb, "WATCH" | "CONNECT") {
                totals.latency.add(series.duration.counts());
            }
        }
        totals
    }

    /// Creates the duration metric of one filter, which is looked up once, when the filter is created.
    #[must_use]
    pub fn filter(&self, name: &'static str) -> Histogram {
        self.filter.get_or_create_owned(&[("filter", name.to_owned())])
    }

    fn longrunning<'l>(&self, labels: &'l RequestSeries) -> &'l Gauge {
        let series = &labels.series;
        series.longrunning.get_or_init(|| self.longrunning.get_or_create_owned(&series.labels))
    }

    fn code(&self, labels: &RequestSeries, code: u16) -> Counter {
        let mut codes = labels.series.codes.lock();
        if let Some((.., counter)) = codes.iter().find(|(c, dry, _)| (*c, *dry) == (code, labels.dry_run)) {
            return counter.clone();
        }
        let request = dry_run_labels(&labels.series.labels, labels.dry_run);
        let counter = self.total.get_or_create_owned(&WithCode { request, code });
        codes.push((code, labels.dry_run, counter.clone()));
        counter
    }
}

/// Registers the latencies of requests that have objectives, also under the name that upstream marks as hidden.
fn objectives(registry: &Registry) -> HistogramVec<RequestLabels> {
    let objective = registry.histogram_vec(
        Desc::histogram(
            "apiserver_request_sli_duration_seconds",
            &["component", "group", "resource", "scope", "subresource", "verb", "version"],
            "[ALPHA] Response latency distribution (not counting webhook duration and \
             priority & fairness queue wait times) in seconds for each verb, group, \
             version, resource, subresource, scope and component.",
        ),
        OBJECTIVES,
    );
    registry.register_hidden(
        Desc::histogram(
            "apiserver_request_slo_duration_seconds",
            &["component", "group", "resource", "scope", "subresource", "verb", "version"],
            "[ALPHA] Response latency distribution (not counting webhook duration and \
             priority & fairness queue wait times) in seconds for each verb, group, \
             version, resource, subresource, scope and component.",
        ),
        "1.27.0",
        objective.clone(),
    );
    objective
}

fn dry_run_labels(request: &RequestLabels, dry_run: &'static str) -> DryRunLabels {
    DryRunLabels { request: request.clone(), dry_run }
}

fn deprecated_labels(request: &RequestLabels, removed: &str) -> [(&'static str, String); 5] {
    let labels = &request.0;
    let to_owned_text = |text: &str| text.to_owned();
    [
        ("group", to_owned_text(&labels.group)),
        ("version", to_owned_text(&labels.version)),
        ("resource", to_owned_text(&labels.resource)),
        ("subresource", to_owned_text(&labels.subresource)),
        ("removed_release", to_owned_text(removed)),
    ]
}

/// Upstream's verb label: HTTP methods, with special values for reads of collections, streams, applies and connections; all
/// unknown verbs are `other`.
fn verb_label(request: &MeasuredRequest<'_>) -> &'static str {
    let MeasuredRequest { info, is_apply, long_running, .. } = *request;
    match info.verb.as_str() {
        _ if info.is_connect() => "CONNECT",
        _ if long_running && console_paths::is_stream(&info.path) => "WATCH",
        "get" => "GET",
        "list" => "LIST",
        "watch" => "WATCH",
        "create" | "post" => "POST",
        "update" | "put" => "PUT",
        "patch" if is_apply => "APPLY",
        "patch" => "PATCH",
        "delete" | "deletecollection" => "DELETE",
        "proxy" | "connect" => "CONNECT",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(metrics: &RequestMetrics, path: &str, known_resource: KnownResource) -> RequestSeries {
        let info = &RequestInfo::parse("GET", path, "").unwrap();
        let (component, long_running) = ("apiserver", false);
        metrics.labels(&MeasuredRequest {
            info,
            component,
            known_resource,
            long_running,
            dry_run: "",
            is_apply: false,
        })
    }

    #[test]
    fn requests_are_counted_by_verb_resource_and_code() {
        let registry = Registry::new();
        let metrics = RequestMetrics::new(&registry);
        let labels = labels(&metrics, "/apis/apps/v1/deployments", KnownResource::Yes);
        metrics.record_start(&labels);
        metrics.record_end(&labels, &RequestOutcome { code: 200, ..RequestOutcome::default() });
        let text = registry.encode(portico_kit::metrics::Format::Text);
        let want = "apiserver_request_total{verb=\"LIST\",dry_run=\"\",group=\"apps\",version=\"v1\",\
            resource=\"deployments\",subresource=\"\",scope=\"cluster\",component=\"apiserver\",code=\"200\"} 1";
        assert!(text.contains(want), "{text}");
    }

    #[test]
    fn totals_count_all_resources_and_no_latency_of_watches() {
        let metrics = RequestMetrics::new(&Registry::new());
        let took = Duration::from_millis(30);
        for (path, code) in [("/api/v1/pods", 200), ("/apis/apps/v1/deployments", 404), ("/healthz", 500)] {
            let labels = labels(&metrics, path, KnownResource::Yes);
            metrics.record_end(&labels, &RequestOutcome { code, took, ..RequestOutcome::default() });
        }
        let watch = RequestInfo::parse("GET", "/api/v1/pods", "watch=true").unwrap();
        let (component, long_running) = ("apiserver", true);
        let request = MeasuredRequest {
            info: &watch,
            component,
            known_resource: KnownResource::Yes,
            long_running,
            dry_run: "",
            is_apply: false,
        };
        metrics.record_start(&metrics.labels(&request));
        let before = Totals::default();
        let totals = metrics.totals();
        assert_eq!((totals.codes_since(&before), totals.long_running), ([0, 1, 0, 1, 1], 1));
        metrics.record_end(
            &metrics.labels(&request),
            &RequestOutcome { code: 200, took, ..RequestOutcome::default() },
        );
        let after = metrics.totals();
        assert_eq!((after.codes_since(&totals), after.long_running), ([0, 1, 0, 0, 0], 0));
        assert_eq!(after.latency_since(&totals).quantile(0.5), None);
        assert!(after.latency_since(&before).quantile(0.5).is_some_and(|half| half > 0.025 && half < 0.05));
    }

    #[test]
    fn unknown_resources_share_one_series() {
        let metrics = RequestMetrics::new(&Registry::new());
        for n in 0..100 {
            labels(&metrics, &format!("/apis/g{n}/v1/r{n}"), KnownResource::No);
        }
        assert_eq!(metrics.series.read().values().map(Vec::len).sum::<usize>(), 1);
    }

    #[test]
    fn a_failure_of_a_backend_is_counted_by_resource_once_the_resource_was_served() {
        let metrics = RequestMetrics::new(&Registry::new());
        let resource = |known_resource| {
            labels(&metrics, "/apis/a.io/v1/things", known_resource).series.labels.0.resource.clone()
        };
        assert_eq!(&*resource(KnownResource::IfSeen), "");
        assert_eq!(&*resource(KnownResource::Yes), "things");
        assert_eq!(&*resource(KnownResource::IfSeen), "things");
    }

    #[test]
    fn series_of_removed_resources_are_dropped_once_no_request_is_in_progress() {
        let registry = Registry::new();
        let metrics = RequestMetrics::new(&registry);
        let under_way = labels(&metrics, "/apis/b.io/v1/slow", KnownResource::Yes);
        for path in ["/apis/a.io/v1/gone", "/apis/b.io/v1/gone", "/version"] {
            let labels = labels(&metrics, path, KnownResource::Yes);
            metrics.record_start(&labels);
            metrics.record_termination(&labels, 504);
            metrics.record_abort(&labels);
            metrics.record_end(&labels, &RequestOutcome { code: 200, ..RequestOutcome::default() });
        }
        let resources = || {
            let text = registry.encode(portico_kit::metrics::Format::Text);
            ["a.io", "b.io"].map(|group| {
                let of_group: Vec<&str> = text.lines().filter(|line| line.contains(group)).collect();
                (
                    of_group.iter().any(|line| line.contains("gone")),
                    of_group.iter().any(|line| line.contains("slow")),
                )
            })
        };
        metrics.retain(|group, _| group != "b.io");
        assert_eq!(resources(), [(true, false), (false, true)]);
        drop(under_way);
        metrics.retain(|_, _| false);
        assert_eq!(resources(), [(false, false), (false, false)]);
        assert_eq!(metrics.series.read().len(), 1, "the path without a resource stays");
    }
}
