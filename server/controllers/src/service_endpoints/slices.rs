//! `endpointslice-controller`: maintains the EndpointSlices of Services with selectors.
//!
//! Reads include the controller's own last write, so that expectations need not be tracked. A slice changed by another client is
//! corrected a second later.

pub mod decision;
mod hints;
mod labels;
mod pack;
mod shares;
mod zones;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::metrics::{self, Desc, Histogram};
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::selector::LabelSelector;
use portico_machinery::{GroupResource, Object, Status, aggregate};
use portico_registry::{ListOptions, LogEntry, Registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::node;
use super::pod::Pod;
use super::service::Service;
use super::slice::{MANAGED_BY_LABEL, SERVICE_LABEL, Slice};
use super::slice_writer::{ChangeMetrics, SliceChanges, SliceWriteError, endpoint_slices, write_changes};
use super::trigger_times::TriggerTimes;
use super::triggers::Subscriber;
use crate::account::{NamespacedName, service_account_context};
use crate::events::{EventRecorder, Events};
use crate::log::Listener;
use decision::{SliceDecision, SliceInput, decide};
use labels::MANAGER;
use shares::ZoneShares;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "endpointslice-controller";

/// Component that the controller's events name as their source.
const COMPONENT: &str = "endpoint-slice-controller";

/// Minimum delay after a change of a slice, to combine changes of a Service's slices (`endpointSliceChangeMinSyncDelay`).
const SLICE_DELAY: Duration = Duration::from_secs(1);
/// Backoff after failures of a Service: 1 s, doubled each time, up to 1000 s.
const RETRIES: BackoffPolicy =
    BackoffPolicy::new(Duration::from_secs(1), Duration::from_secs(1000), 2.0, 0.0);
/// Bounds of histograms of numbers of endpoints: powers of two.
const COUNT_BUCKETS: &[f64] =
    &[2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0];

/// Settings of the controller.
#[derive(Clone, Copy, Debug)]
pub struct SliceSettings {
    /// `--concurrent-service-endpoint-syncs`
    pub workers: usize,
    /// `--max-endpoints-per-slice`
    pub max_endpoints: usize,
    /// `--endpointslice-updates-batch-period`
    pub batch_period: Duration,
}

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct EndpointSlices {
    settings: SliceSettings,
    queue: WorkQueue<NamespacedName>,
    times: Arc<TriggerTimes>,
    by_node: Arc<Mutex<NodeDependencies>>,
    shares: ZoneShares,
    metrics: SliceMetrics,
    recorder: EventRecorder,
}

/// Services to reconcile when nodes change. The size is bounded by the Services and the nodes that their pods name.
#[derive(Default)]
struct NodeDependencies {
    /// Services with pods on nodes that do not exist, by node.
    missing: HashMap<String, BTreeSet<NamespacedName>>,
    /// Missing nodes, by Service.
    nodes: HashMap<NamespacedName, BTreeSet<String>>,
    /// Services with zone hints.
    hinted: HashSet<NamespacedName>,
}

#[derive(Clone)]
struct SliceMetrics {
    changes: ChangeMetrics,
    added: Histogram,
    removed: Histogram,
    syncs: Family<[(&'static str, &'static str); 1], Counter>,
}

impl SliceMetrics {
    fn new(registry: &metrics::Registry) -> Self {
        Self {
            changes: ChangeMetrics::new(
                registry,
                Desc::counter(
                    "endpoint_slice_controller_changes",
                    &["operation"],
                    "[ALPHA] Number of EndpointSlice changes",
                ),
            ),
            added: registry.histogram(
                Desc::histogram(
                    "endpoint_slice_controller_endpoints_added_per_sync",
                    &[],
                    "[ALPHA] Number of endpoints added on each Service sync",
                ),
                COUNT_BUCKETS,
            ),
            removed: registry.histogram(
                Desc::histogram(
                    "endpoint_slice_controller_endpoints_removed_per_sync",
                    &[],
                    "[ALPHA] Number of endpoints removed on each Service sync",
                ),
                COUNT_BUCKETS,
            ),
            syncs: registry.counter_vec(Desc::counter(
                "endpoint_slice_controller_syncs",
                &["result"],
                "[ALPHA] Number of EndpointSlice syncs",
            )),
        }
    }

    fn count_sync<T, E>(&self, result: &Result<T, E>) {
        let label = if result.is_ok() { "success" } else { "error" };
        self.syncs.get_or_create(&[("result", label)]).inc();
    }
}

impl EndpointSlices {
    /// Creates the controller.
    #[must_use]
    pub fn new(
        settings: SliceSettings,
        queues: &QueueMetrics,
        metrics: &metrics::Registry,
        events: &Events,
    ) -> Self {
        Self {
            settings,
            queue: WorkQueue::with_metrics("endpoint_slice", RETRIES, queues),
            times: Arc::default(),
            by_node: Arc::default(),
            shares: ZoneShares::default(),
            metrics: SliceMetrics::new(metrics),
            recorder: events.recorder(COMPONENT, NAME),
        }
    }

    /// Returns the queue of Services, with its delay.
    #[must_use]
    pub fn subscriber(&self) -> Subscriber {
        Subscriber { queue: self.queue.clone(), batch_period: self.settings.batch_period }
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, registry) = (self.clone(), registry.clone());
        run_workers(tasks, NAME, self.settings.workers, self.queue.clone(), move |key| {
            let (worker, registry) = (worker.clone(), registry.clone());
            async move {
                let synced = worker.reconcile(&registry, &key).await;
                worker.metrics.count_sync(&synced);
                synced
            }
        });
    }

    async fn reconcile(
        &self,
        registry: &Registry,
        key: &NamespacedName,
    ) -> Result<ReconcileOutcome, Box<Status>> {
        let Some(stored) = registry.get_stored(&key.object_ref("", "services")).await? else {
            self.times.forget(key);
            self.set_dependencies(key, &BTreeSet::new(), false);
            return Ok(ReconcileOutcome::Done);
        };
        let service: Service = stored.read().map_err(Status::internal)?;
        if !service.selects_pods() {
            return Ok(ReconcileOutcome::Done);
        }
        let pods = selected_pods(registry, key, stored.object()).await?;
        let existing = slices_of(registry, key, MANAGER).await?;
        let nodes = nodes_of(registry, &pods).await?;
        let shares = if service.wants_zone_hints() { self.shares.read(registry).await? } else { None };
        // Called even if nothing is written, because it updates its state.
        let time = self.times.update(key, &service, &pods);
        let input = SliceInput {
            service: &service,
            pods: &pods,
            existing,
            nodes: &nodes,
            shares: shares.as_deref(),
            max: self.settings.max_endpoints,
        };
        let decision = decide(input);
        self.set_dependencies(key, &decision.missing_nodes, service.wants_zone_hints());
        let skipped = skipped_messages(key, &pods, &decision.missing_nodes);
        let written = self.write(registry, key, decision, time.as_deref()).await;
        let errors: Vec<String> =
            skipped.into_iter().chain(written.as_ref().err().map(ToString::to_string)).collect();
        if !errors.is_empty() {
            let NamespacedName { namespace, name } = key;
            let why = aggregate(&errors);
            let message = format!("Error updating Endpoint Slices for Service {namespace}/{name}: {why}");
            self.recorder.warn(stored.object(), "FailedToUpdateEndpointSlices", message);
        }
        written?;
        Ok(ReconcileOutcome::Done)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of endpoints are small")]
    async fn write(
        &self,
        registry: &Registry,
        key: &NamespacedName,
        decision: SliceDecision,
        time: Option<&str>,
    ) -> Result<(), SliceWriteError> {
        self.metrics.added.observe(decision.added as f64);
        self.metrics.removed.observe(decision.removed as f64);
        let mut changes: SliceChanges = decision.changes;
        changes.set_trigger_time(time);
        write_changes(registry, (&service_account_context(NAME), key), changes, &self.metrics.changes).await
    }

    /// Records the missing nodes of a Service, and its use of zone hints.
    fn set_dependencies(&self, key: &NamespacedName, missing: &BTreeSet<String>, is_hinted: bool) {
        let mut by_node = self.by_node.lock();
        let by_node = &mut *by_node;
        for node in by_node.nodes.remove(key).unwrap_or_default() {
            if let Some(services) = by_node.missing.get_mut(&node) {
                services.remove(key);
                if services.is_empty() {
                    by_node.missing.remove(&node);
                }
            }
        }
        for node in missing {
            by_node.missing.entry(node.clone()).or_default().insert(key.clone());
        }
        if !missing.is_empty() {
            by_node.nodes.insert(key.clone(), missing.clone());
        }
        match is_hinted {
            true => by_node.hinted.insert(key.clone()),
            false => by_node.hinted.remove(key),
        };
    }

    fn on_node(&self, change: &LogEntry) {
        self.shares.on_node(change);
        let by_node = self.by_node.lock();
        if !change.is_deleted() {
            by_node
                .missing
                .get(change.name())
                .into_iter()
                .flatten()
                .for_each(|key| self.queue.add(key.clone()));
        }
        if !by_node.hinted.is_empty() && changes_shares(change) {
            by_node.hinted.iter().for_each(|key| self.queue.add(key.clone()));
        }
    }

    fn on_slice(&self, change: &LogEntry) {
        let (now, before) = (change.stored(), change.previous());
        let delay = SLICE_DELAY.max(self.settings.batch_period);
        for slice in before.iter().chain([&now]) {
            let label = |key: &str| slice.record().value.label(key);
            if let (Some(MANAGER), Some(service)) = (label(MANAGED_BY_LABEL), label(SERVICE_LABEL)) {
                self.queue.add_after(NamespacedName::new(change.namespace(), service), delay);
            }
        }
    }
}

impl Listener for EndpointSlices {
    fn resync<'a>(&'a self, _: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        // Services are enqueued by `triggers`.
        self.shares.invalidate();
        Box::pin(async { Ok(()) })
    }

    fn on_event(&self, change: &LogEntry) {
        let resource = change.resource();
        match (resource.group.as_str(), resource.resource.as_str()) {
            ("discovery.k8s.io", "endpointslices") => self.on_slice(change),
            ("", "nodes") => self.on_node(change),
            _ => {}
        }
    }
}

/// Returns true if a change of a node may change the shares of zones.
fn changes_shares(change: &LogEntry) -> bool {
    let Some(before) = change.previous().filter(|_| !change.is_deleted()) else { return true };
    let shared = |node: &Object| (node::is_ready(node), node::zone(node).map(str::to_owned));
    shared(change.stored().object()) != shared(before.object())
}

/// Returns messages about pods that are skipped because their nodes do not exist.
fn skipped_messages(key: &NamespacedName, pods: &[Pod], missing_nodes: &BTreeSet<String>) -> Vec<String> {
    let skipped = pods.iter().filter(|pod| missing_nodes.contains(&pod.spec.node_name));
    let message = |pod: &Pod| {
        let (pod, node) = (&pod.metadata.name, &pod.spec.node_name);
        format!("skipping Pod {pod} for Service {}/{}: Node {node} Not Found", key.namespace, key.name)
    };
    skipped.map(message).collect()
}

/// Returns the pods that a Service selects.
pub(super) async fn selected_pods(
    registry: &Registry,
    key: &NamespacedName,
    service: &Object,
) -> Result<Vec<Pod>, Box<Status>> {
    let labels = LabelSelector::from_labels(&service.at(&["spec", "selector"]));
    let selected = ListOptions { labels, ..ListOptions::default() };
    let pods = registry.list(&GroupResource::new("", "pods"), &key.namespace, &selected).await?;
    pods.items.iter().map(|pod| pod.read().map_err(|error| Box::new(Status::internal(error)))).collect()
}

/// Returns the slices of a Service that have this manager and are not being deleted.
pub(super) async fn slices_of(
    registry: &Registry,
    key: &NamespacedName,
    manager: &str,
) -> Result<Vec<Slice>, Box<Status>> {
    let mut labels = Object::default();
    labels.set(&["l", SERVICE_LABEL], &key.name);
    labels.set(&["l", MANAGED_BY_LABEL], manager);
    let labels = LabelSelector::from_labels(&labels.at(&["l"]));
    let options = ListOptions { labels, ..ListOptions::default() };
    let listed = registry.list(&endpoint_slices(), &key.namespace, &options).await?;
    let existing = listed.items.iter().filter(|slice| !slice.is_deleting());
    Ok(existing.map(Slice::of_stored).collect())
}

/// Returns the existing nodes of pods, each with its zone.
async fn nodes_of(
    registry: &Registry,
    pods: &[Pod],
) -> Result<BTreeMap<String, Option<String>>, Box<Status>> {
    let mut nodes = BTreeMap::new();
    let names: BTreeSet<&str> = pods.iter().map(|pod| pod.spec.node_name.as_str()).collect();
    for name in names.into_iter().filter(|name| !name.is_empty()) {
        let object_ref = NamespacedName::new("", name).object_ref("", "nodes");
        if let Some(node) = registry.get_stored(&object_ref).await? {
            nodes.insert(name.to_owned(), node::zone(node.object()).map(str::to_owned));
        }
    }
    Ok(nodes)
}
