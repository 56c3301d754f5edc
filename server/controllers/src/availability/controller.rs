//! Parts shared by both controllers: queues, the cache, and reports of verdicts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::metrics::Registry as MetricsRegistry;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, WorkQueue};
use portico_machinery::resolve::{AffectedApiServices, ApiServiceFacts, ResolveMode, RoutingFacts};
use portico_machinery::route::Target;
use portico_machinery::time;
use tokio::time::Instant;

use super::cache::ProbeCache;
use super::decision::{AvailabilityVerdict, ConditionStatus};
use super::metrics::Metrics;
use super::peers::{PeerReport, Peers};
use super::probe::{ProbeStage, Prober};
use super::probe_limits::ProbeLimits;
use super::status::{StatusQueue, StatusSink, StatusWriter};
use portico_routes::informers::Informers;

/// Upstream's rate limiter: 5 ms, doubled each time, up to 30 s.
const RETRY: BackoffPolicy = BackoffPolicy::new(Duration::from_millis(5), Duration::from_secs(30), 2.0, 0.0);

/// Handle of both controllers. Cheap to clone.
pub struct Availability<P> {
    pub(super) inner: Arc<Inner<P>>,
}

pub(super) struct Inner<P> {
    pub(super) mode: ResolveMode,
    pub(super) informers: Informers,
    pub(super) prober: P,
    pub(super) cache: Mutex<ProbeCache>,
    pub(super) peers: Mutex<Peers>,
    pub(super) limits: ProbeLimits,
    pub(super) local: WorkQueue<Arc<str>>,
    pub(super) remote: WorkQueue<Arc<str>>,
    status: StatusQueue,
    metrics: Metrics,
}

impl<P> Clone for Availability<P> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

/// Last observation of a backend by one observer, for Explain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// `control`, or the facade's name.
    pub observer: String,
    /// Stage at which requests fail; `None` if the backend is reached.
    pub failed_at: Option<ProbeStage>,
    /// Human-readable details.
    pub message: String,
    /// Wall time since which the state is the same, RFC 3339.
    pub since: String,
}

impl<P: Prober> Availability<P> {
    /// Creates the controllers and subscribes to the informers; must be called before they run. `mode` is the resolver's mode.
    #[must_use]
    pub fn new(informers: &Informers, prober: P, mode: ResolveMode, metrics: &MetricsRegistry) -> Self {
        let queues = QueueMetrics::new(metrics);
        let controller = Self {
            inner: Arc::new(Inner {
                mode,
                informers: informers.clone(),
                prober,
                cache: Mutex::default(),
                peers: Mutex::default(),
                limits: ProbeLimits::default(),
                local: WorkQueue::with_metrics("LocalAvailabilityController", RETRY, &queues),
                remote: WorkQueue::with_metrics("RemoteAvailabilityController", RETRY, &queues),
                status: StatusQueue::default(),
                metrics: Metrics::new(metrics),
            }),
        };
        // A weak reference avoids a cycle between the informers' handler and the controller.
        let weak = Arc::downgrade(&controller.inner);
        informers.on_change(Arc::new(move |facts, touched, _| {
            if let Some(inner) = weak.upgrade() {
                inner.enqueue(facts, touched);
            }
        }));
        controller
    }

    /// Starts the one task that writes the verdicts of both controllers.
    pub fn run_writer<S: StatusSink>(&self, sink: S, tasks: &TaskSet) {
        let (local, remote) = (self.inner.local.clone(), self.inner.remote.clone());
        let informers = self.inner.informers.clone();
        let on_failure = Arc::new(move |name: Arc<str>| {
            let is_local = informers.index().api_service(&name).is_some_and(|f| f.backend.is_none());
            if is_local { local.add_rate_limited(name) } else { remote.add_rate_limited(name) }
        });
        let (queue, metrics) = (self.inner.status.clone(), self.inner.metrics.clone());
        tasks.spawn_until_cancelled(
            "availability-status",
            StatusWriter { queue, sink, metrics, on_failure }.run(),
        );
    }

    /// Handles a facade's report about a backend: reached, or the stage at which requests fail. Facades repeat a success at least
    /// every 30 seconds; it expires after [`FACADE_REPORT_TTL`](super::FACADE_REPORT_TTL). A failure triggers a probe at once.
    pub fn on_facade_report(&self, facade: &str, name: &str, failed_at: Option<ProbeStage>, detail: &str) {
        // Facades may report on an APIService shortly after its deletion; such reports are ignored.
        let registered_name = self.inner.informers.index().api_service(name).map(|facts| facts.name.clone());
        let Some(name) = registered_name else { return };
        let since = time::rfc3339(Timestamp::now());
        if self.inner.cache.lock().record_report(facade, &name, failed_at, detail, Instant::now(), since) {
            self.inner.remote.add(name);
        }
    }

    /// Removes the reports of a facade that is no longer connected.
    pub fn forget_facade(&self, facade: &str) {
        let affected = self.inner.cache.lock().forget_facade(facade);
        affected.into_iter().for_each(|name| self.inner.remote.add(name));
    }

    /// Stores the reports of all other control services of the store, by identity, and returns the report of this one (`own`).
    pub fn exchange_reports(&self, own: &str, others: BTreeMap<String, PeerReport>) -> PeerReport {
        let now = Instant::now();
        let (mut peers, mut cache) = (self.inner.peers.lock(), self.inner.cache.lock());
        for name in peers.newly_unreached(&others) {
            if let Some(delay) = cache.expire_reached(name, now) {
                self.inner.remote.add_after(name.into(), delay);
            }
        }
        let changed = peers.replace(own, others, now);
        let report = peers.own_report(cache.reachability(now));
        drop((peers, cache));
        changed.into_iter().for_each(|name| self.inner.remote.add(name.into()));
        report
    }

    /// Returns the callback for idle connections closed by a backend: the backend may have failed, and is probed without
    /// waiting for the next interval.
    pub fn on_connection_lost(&self) -> impl Fn(&Target) + Send + Sync + use<P> {
        // A weak reference, because the prober owns the caller.
        let weak = Arc::downgrade(&self.inner);
        move |target| {
            let Some(inner) = weak.upgrade() else { return };
            let probe = inner.cache.lock().on_connection_lost(target, Instant::now());
            if let Some((name, delay)) = probe {
                inner.remote.add_after(name, delay);
            }
        }
    }

    /// Probes every backend again after a change of the client certificate.
    pub fn reprobe_all(&self) {
        self.inner.cache.lock().expire_all(Instant::now());
        let facts = self.inner.informers.index();
        facts
            .api_services()
            .filter(|f| f.backend.is_some())
            .for_each(|f| self.inner.remote.add(f.name.clone()));
    }

    /// Returns the last valid observations of a backend: that of the control service first, then those of facades by name.
    #[must_use]
    pub fn observations(&self, name: &str) -> Vec<Observation> {
        let cache = self.inner.cache.lock();
        let own_observation = cache.outcome(name).map(|outcome| {
            let failure = outcome.result.as_ref().err();
            Observation {
                observer: "control".to_owned(),
                failed_at: failure.map(|f| f.stage),
                message: failure.map(ToString::to_string).unwrap_or_default(),
                since: outcome.since.clone(),
            }
        });
        let facades = cache.reports(name, Instant::now()).into_iter().map(|(facade, report)| Observation {
            observer: facade.to_owned(),
            failed_at: report.failed_at,
            message: report.detail.clone(),
            since: report.since.clone(),
        });
        own_observation.into_iter().chain(facades).collect()
    }

    /// Returns the number of conditions that wait to be written.
    #[must_use]
    pub fn pending_writes(&self) -> usize {
        self.inner.status.len()
    }

    /// Reports a verdict: updates the gauge each time, writes the condition only if it differs.
    pub(super) fn report(&self, facts: &ApiServiceFacts, verdict: AvailabilityVerdict) {
        self.inner.metrics.record_decision(&facts.name, verdict.status == ConditionStatus::True);
        if verdict.is_reported_by(facts.available.as_ref()) {
            self.inner.status.withdraw(&facts.name);
        } else {
            // A change of availability opens or closes a route.
            let urgent = (verdict.status == ConditionStatus::True) != facts.is_available();
            self.inner.status.put(&facts.name, &facts.uid, verdict, urgent);
        }
    }

    /// Updates the gauge, and leaves the condition to another control service, which reports on this APIService.
    pub(super) fn defer_to_peer(&self, name: &str, is_available: bool) {
        self.inner.metrics.record_decision(name, is_available);
        self.inner.status.withdraw(name);
    }

    pub(super) fn forget(&self, name: &str) {
        self.inner.metrics.forget(name);
        self.inner.cache.lock().forget(name);
        self.inner.peers.lock().forget(name);
        self.inner.status.withdraw(name);
    }
}

impl<P> Inner<P> {
    /// Adds local APIServices to the local queue and all others to the remote one; one that has just become local goes to both.
    fn enqueue(&self, facts: &RoutingFacts, touched: &AffectedApiServices) {
        for name in touched {
            let local = facts.api_service(name).is_some_and(|f| f.backend.is_none());
            if local {
                self.local.add(name.clone());
            }
            if !local || self.cache.lock().outcome(name).is_some() {
                self.remote.add(name.clone());
            }
        }
    }
}
