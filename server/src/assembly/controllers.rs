//! The controllers that `--controllers` governs: kube-controller-manager's, as far as Portico has them.

use std::collections::BTreeSet;
use std::sync::Arc;

use portico_controllers::garbage::GarbageCollector;
use portico_controllers::log::{Listener, Listening};
use portico_controllers::namespace::NamespaceDeletion;
use portico_controllers::per_namespace::PerNamespace;
use portico_kit::metrics;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::QueueMetrics;
use portico_registry::Registry;

/// Starts those that are wanted; they end with `tasks`. `ca` is what clients inside check the facade's certificate with.
pub(super) fn start(
    wanted: &BTreeSet<String>,
    registry: &Registry,
    ca: &str,
    metrics: &metrics::Registry,
    tasks: &TaskSet,
) {
    let queues = QueueMetrics::new(metrics);
    let mut listeners: Vec<Arc<dyn Listener>> = Vec::new();
    let is_wanted = |name: &str| wanted.contains(name);
    if is_wanted("garbage-collector-controller") {
        let garbage = GarbageCollector::new(&queues);
        garbage.run_workers(registry, tasks);
        listeners.push(Arc::new(garbage));
    }
    if is_wanted("namespace-controller") {
        let namespaces = NamespaceDeletion::new(&queues);
        namespaces.run_workers(registry, tasks);
        listeners.push(Arc::new(namespaces));
    }
    let kept = [PerNamespace::service_account(&queues), PerNamespace::root_ca(ca.to_owned(), &queues)];
    for kept in kept.into_iter().filter(|kept| is_wanted(kept.name())) {
        kept.run_workers(registry, tasks);
        listeners.push(Arc::new(kept));
    }
    if !listeners.is_empty() {
        tasks.spawn("controllers-log", Listening::new(listeners).run(registry.clone(), tasks.clone()));
    }
}
