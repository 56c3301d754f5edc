//! Deletes the content of namespaces that are being deleted, then finalizes them (`namespace-controller`).
//!
//! The store's index provides the resources with objects in a namespace, so that no list of kinds is needed and only existing
//! objects are loaded. Pods are deleted first, because they may use all other objects.

pub mod conditions;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::{GroupResource, Object, Reason, Status, time};
use portico_registry::{
    Context, DeleteOptions, ListOptions, LogEntry, ObjectPart, Propagation, Registry, StoredObject,
    UpdateOptions,
};

use crate::log::Listener;
use crate::write_result::ignore_reasons;
use conditions::RemainingContent;

const WORKERS: usize = 4;

/// Finalizer of namespaces, removed when this controller has deleted the content.
const FINALIZER: &str = "kubernetes";

/// Interval between two passes over the remaining content, unless it is gone earlier.
const PERIOD: Duration = Duration::from_secs(5);

/// Backoff for namespaces whose content could not be listed or deleted (upstream's `nsControllerRateLimiter`).
const RETRIES: BackoffPolicy = BackoffPolicy { max: Duration::from_secs(60), ..BackoffPolicy::CONTROLLER };

/// Content of namespaces on other API servers.
pub trait ForeignContent: Send + Sync {
    /// Deletes the content, and adds remaining objects and unreachable servers to `remaining`.
    fn delete_content<'a>(
        &'a self,
        namespace: &'a str,
        remaining: &'a mut RemainingContent,
    ) -> BoxFuture<'a, ()>;
}

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct NamespaceDeletion {
    foreign: Arc<dyn ForeignContent>,
    queue: WorkQueue<String>,
    /// Namespaces that wait for the deletion of their content.
    terminating: Arc<Mutex<HashMap<String, ContentCount>>>,
}

/// Content of a namespace that is being deleted.
#[derive(Clone, Copy, Default)]
struct ContentCount {
    /// Number of remaining objects; `None` until they are counted.
    remaining: Option<usize>,
    /// Number of objects deleted since the count began.
    deleted: usize,
}

impl ContentCount {
    fn is_gone(self) -> bool {
        self.remaining.is_some_and(|left| self.deleted >= left)
    }
}

impl NamespaceDeletion {
    /// Creates the controller.
    #[must_use]
    pub fn new(foreign: Arc<dyn ForeignContent>, metrics: &QueueMetrics) -> Self {
        Self {
            foreign,
            queue: WorkQueue::with_metrics("namespace", RETRIES, metrics),
            terminating: Arc::default(),
        }
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, registry) = (self.clone(), registry.clone());
        run_workers(tasks, "namespace-controller", WORKERS, self.queue.clone(), move |name| {
            let (worker, registry) = (worker.clone(), registry.clone());
            async move { worker.reconcile(&registry, &name).await }
        });
    }

    async fn reconcile(&self, registry: &Registry, name: &str) -> Result<ReconcileOutcome, Box<Status>> {
        let namespace = match registry.get(&namespaces(), "", name).await {
            Ok(stored) if needs_finalizing(stored.object()) => stored,
            Ok(_) => return Ok(self.stop_waiting(name)),
            Err(status) if status.reason() == Reason::NotFound => return Ok(self.stop_waiting(name)),
            Err(status) => return Err(status),
        };
        let start_count = || {
            self.terminating.lock().insert(name.to_owned(), ContentCount::default());
        };
        let mut remaining = delete_content(registry, name, start_count).await?;
        let remaining_count = remaining.objects.values().sum();
        self.foreign.delete_content(name, &mut remaining).await;
        let (context, options) = (context(), UpdateOptions::default());
        let mut current = namespace.object().clone();
        if let Some(reported) =
            conditions::with_conditions(&current, &remaining, &time::rfc3339(Timestamp::now()))
        {
            let written = registry.update_status(&context, &namespaces(), reported).await?;
            current = written.stored.object().clone();
        }
        if !remaining.failures.is_empty() {
            return Err(Box::new(Status::internal(remaining.failures.join(", "))));
        }
        if !remaining.is_empty() {
            return Ok(ReconcileOutcome::RequeueAfter(if self.wait_for(name, remaining_count) {
                PERIOD
            } else {
                Duration::ZERO
            }));
        }
        let finalized = conditions::without_finalizer(&current, FINALIZER);
        let part = ObjectPart::Subresource("finalize");
        let written = registry.update(&context, &namespaces(), part, finalized, &options).await;
        ignore_reasons(written, &[Reason::NotFound])?;
        Ok(self.stop_waiting(name))
    }

    /// Waits for this number of objects to be deleted. Returns false if that has happened since the count.
    fn wait_for(&self, name: &str, remaining: usize) -> bool {
        let mut terminating = self.terminating.lock();
        let content = terminating.entry(name.to_owned()).or_default();
        content.remaining = Some(remaining).filter(|left| *left > 0);
        !content.is_gone()
    }

    fn stop_waiting(&self, name: &str) -> ReconcileOutcome {
        self.terminating.lock().remove(name);
        ReconcileOutcome::Done
    }
}

impl Listener for NamespaceDeletion {
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&namespaces(), "", &ListOptions::default()).await?.items;
            let deleting = all.iter().filter(|namespace| namespace.is_deleting());
            deleting.for_each(|namespace| self.queue.add(namespace.name().to_owned()));
            Ok(())
        })
    }

    fn on_event(&self, change: &LogEntry) {
        if change.is_deleted() {
            let mut terminating = self.terminating.lock();
            let Some(content) = terminating.get_mut(change.namespace()) else { return };
            content.deleted += 1;
            if content.is_gone() {
                self.queue.add(change.namespace().to_owned());
            }
        } else if is_namespace(change.resource()) && change.stored().is_deleting() {
            // Later states are skipped: this controller changes the conditions with each pass.
            let is_new = change.previous().is_none_or(|before| !before.is_deleting());
            if is_new || !self.terminating.lock().contains_key(change.name()) {
                self.queue.add(change.name().to_owned());
            }
        }
    }
}

pub(crate) fn is_namespace(resource: &GroupResource) -> bool {
    resource.group.is_empty() && resource.resource == "namespaces"
}

pub(crate) fn namespaces() -> GroupResource {
    GroupResource::new("", "namespaces")
}

fn context() -> Context {
    Context::system("system:serviceaccount:kube-system:namespace-controller")
}

/// Returns true if the namespace is being deleted and has this controller's finalizer.
fn needs_finalizing(namespace: &Object) -> bool {
    let finalizers = namespace.at(&["spec", "finalizers"]);
    namespace.deletion_timestamp().is_some() && finalizers.items().any(|f| f.str() == FINALIZER)
}

/// Deletes all objects, pods first, and returns the rest. Calls `counting` before the rest is counted.
async fn delete_content(
    registry: &Registry,
    namespace: &str,
    counting: impl Fn(),
) -> Result<RemainingContent, Box<Status>> {
    let mut resources = served_in(registry, namespace).await?;
    let pods = GroupResource::new("", "pods");
    if resources.contains(&pods) {
        let mut remaining = RemainingContent::default();
        delete(registry, namespace, &pods, &mut remaining).await;
        counting();
        count(registry, namespace, &pods, &mut remaining).await;
        if !remaining.is_empty() {
            return Ok(remaining);
        }
        resources.retain(|resource| *resource != pods);
    }
    let mut remaining = RemainingContent::default();
    for resource in &resources {
        delete(registry, namespace, resource, &mut remaining).await;
    }
    counting();
    for resource in served_in(registry, namespace).await? {
        count(registry, namespace, &resource, &mut remaining).await;
    }
    Ok(remaining)
}

/// Returns the served resources with objects in a namespace. Objects of a resource that is not served (`--runtime-config`)
/// are inaccessible: they stay in the database and do not block the deletion, as upstream.
async fn served_in(registry: &Registry, namespace: &str) -> Result<Vec<GroupResource>, Box<Status>> {
    let mut resources = registry.resources_in(namespace).await?;
    resources.retain(|resource| {
        let is_served = registry.has_verbs(resource, &[]).is_some();
        if !is_served {
            tracing::warn!(namespace, %resource, "namespace deletion skips objects of an unserved resource");
        }
        is_served
    });
    Ok(resources)
}

/// Deletes the objects of a resource. Skips the resource if all of them are already being deleted, to avoid admission.
async fn delete(
    registry: &Registry,
    namespace: &str,
    resource: &GroupResource,
    remaining: &mut RemainingContent,
) {
    let options = DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
    let deleted = async {
        let all = registry.list(resource, namespace, &ListOptions::default()).await?.items;
        if all.iter().all(StoredObject::is_deleting) {
            return Ok(());
        }
        registry.delete_collection(&context(), resource, namespace, &all, &options).await
    };
    if let Err(status) = deleted.await {
        remaining.fail(resource, &status);
    }
}

/// Counts the remaining objects of a resource.
async fn count(
    registry: &Registry,
    namespace: &str,
    resource: &GroupResource,
    remaining: &mut RemainingContent,
) {
    let listed = match registry.list(resource, namespace, &ListOptions::default()).await {
        Ok(left) => left,
        Err(status) => return remaining.fail(resource, &status),
    };
    let count = listed.items.len() + listed.unreadable;
    if count > 0 {
        let finalizers =
            listed.items.iter().flat_map(|object| object.object().finalizers()).map(str::to_owned);
        remaining.add(resource.clone(), count, finalizers);
    }
}
