//! Finds the Services that changes of Services and pods affect, and enqueues their keys for the controllers of endpoints.
//!
//! The selectors of Services are indexed in memory by namespace and label: the Services of a pod are found without checking
//! others, and a pod is decoded only if it has Services.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use portico_kit::workqueue::WorkQueue;
use portico_machinery::selector::LabelSelector;
use portico_machinery::{GroupResource, Status};
use portico_registry::{ListOptions, LogEntry, Registry, StoredObject};

use super::pod::Pod;
use crate::account::NamespacedName;
use crate::log::Listener;
use crate::selectors::Selectors;

/// Work queue of Services, and the delay after changes of pods.
#[derive(Clone)]
pub struct Subscriber {
    pub queue: WorkQueue<NamespacedName>,
    /// Delay after a change of a pod, to combine changes.
    pub batch_period: Duration,
}

/// Listener that enqueues Services. Cheap to clone.
#[derive(Clone)]
pub struct ServiceTriggers {
    selectors: Arc<Mutex<Selectors>>,
    subscribers: Arc<[Subscriber]>,
}

impl ServiceTriggers {
    /// Creates a listener for these queues.
    #[must_use]
    pub fn new(subscribers: Vec<Subscriber>) -> Self {
        Self { selectors: Arc::default(), subscribers: subscribers.into() }
    }

    fn on_service(&self, change: &LogEntry) {
        let selector = if change.is_deleted() { None } else { selector_of(&change.stored()) };
        self.selectors.lock().put(change.namespace(), change.name(), selector);
        let key = NamespacedName::new(change.namespace(), change.name());
        self.subscribers.iter().for_each(|subscriber| subscriber.queue.add(key.clone()));
    }

    fn on_pod(&self, change: &LogEntry) {
        for name in self.services_of(change) {
            let key = NamespacedName::new(change.namespace(), &name);
            for subscriber in self.subscribers.iter() {
                subscriber.queue.add_after(key.clone(), subscriber.batch_period);
            }
        }
    }

    /// Returns the Services whose endpoints may change with a pod (`GetPodUpdateProjectionKey`, `GetServicesToUpdate`).
    fn services_of(&self, change: &LogEntry) -> BTreeSet<String> {
        let (pod, before) = (change.stored(), change.previous());
        let matching = |pod: &StoredObject| {
            let labels = &pod.record().value.indexed().labels;
            self.selectors.lock().matching(change.namespace(), labels)
        };
        let now = matching(&pod);
        let Some(before) = before.filter(|_| !change.is_deleted()) else { return now };
        let matching_before = matching(&before);
        if now.is_empty() && matching_before.is_empty() {
            return now;
        }
        let differs = match (pod.read::<Pod>(), before.read::<Pod>()) {
            (Ok(pod), Ok(before)) => pod.differs_from(&before),
            // A pod that cannot be decoded may have changed.
            _ => true,
        };
        if differs { &now | &matching_before } else { &now ^ &matching_before }
    }
}

impl Listener for ServiceTriggers {
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let services = registry.list(&services(), "", &ListOptions::default()).await?.items;
            let mut selectors = self.selectors.lock();
            selectors.clear();
            for service in &services {
                selectors.put(service.namespace(), service.name(), selector_of(service));
                let key = NamespacedName::new(service.namespace(), service.name());
                self.subscribers.iter().for_each(|subscriber| subscriber.queue.add(key.clone()));
            }
            Ok(())
        })
    }

    fn on_event(&self, change: &LogEntry) {
        let resource = change.resource();
        match (resource.group.as_str(), resource.resource.as_str()) {
            ("", "services") => self.on_service(change),
            ("", "pods") => self.on_pod(change),
            _ => {}
        }
    }
}

pub(super) fn services() -> GroupResource {
    GroupResource::new("", "services")
}

fn selector_of(service: &StoredObject) -> Option<LabelSelector> {
    let selector = service.object().at(&["spec", "selector"]);
    selector.is_present().then(|| LabelSelector::from_labels(&selector))
}
