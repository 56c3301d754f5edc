//! Individual objects that kube-apiserver itself maintains: created when missing, corrected when changed, recreated when deleted.
//!
//! The pure functions in the submodules decide their content. `--controllers` does not affect these objects.

pub mod authentication;
pub mod kubernetes_service;
pub mod token_tracking;

use std::sync::Arc;

use futures::future::BoxFuture;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::{Context, CreateOptions, LogEntry, ObjectPart, ObjectRef, Registry};

use crate::log::Listener;
use crate::write_result::ignore_reasons;

/// Computes an object from the current one; `None` if it is up to date or cannot be decided yet.
type DesiredObject = Arc<dyn Fn(Option<&Object>) -> Option<Object> + Send + Sync>;

/// One maintained object.
#[derive(Clone)]
pub struct SystemObject {
    reference: ObjectRef,
    desired: DesiredObject,
    /// Computes the status, once the object exists.
    desired_status: Option<DesiredObject>,
}

impl SystemObject {
    /// Creates a maintained object from its resource, namespace (empty at cluster scope), name and content.
    pub fn new(
        resource: GroupResource,
        namespace: &str,
        name: &str,
        desired: impl Fn(Option<&Object>) -> Option<Object> + Send + Sync + 'static,
    ) -> Self {
        let reference = ObjectRef { resource, namespace: namespace.to_owned(), name: name.to_owned() };
        Self { reference, desired: Arc::new(desired), desired_status: None }
    }

    /// Adds a maintained status.
    #[must_use]
    pub fn with_status(
        mut self,
        status: impl Fn(Option<&Object>) -> Option<Object> + Send + Sync + 'static,
    ) -> Self {
        self.desired_status = Some(Arc::new(status));
        self
    }
}

/// Controller of system objects. Cheap to clone.
#[derive(Clone)]
pub struct SystemObjects {
    objects: Arc<[SystemObject]>,
    /// Resource that the content depends on: its changes affect all objects.
    source: Option<GroupResource>,
    queue: WorkQueue<usize>,
}

impl SystemObjects {
    /// Creates the controller. Objects that others refer to come first. A change of `source` affects all objects.
    #[must_use]
    pub fn new(objects: Vec<SystemObject>, source: Option<GroupResource>, metrics: &QueueMetrics) -> Self {
        let queue = WorkQueue::with_metrics("system_objects", BackoffPolicy::RECONNECT, metrics);
        Self { objects: objects.into(), source, queue }
    }

    /// Starts the worker, which writes one object at a time, in their order, until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, registry) = (self.clone(), registry.clone());
        run_workers(tasks, "system-objects", 1, self.queue.clone(), move |at| {
            let (worker, registry) = (worker.clone(), registry.clone());
            async move { worker.reconcile(&registry, &worker.objects[at]).await }
        });
    }

    /// Reconciles all objects, because data that they depend on has changed.
    pub fn enqueue_all(&self) {
        (0..self.objects.len()).for_each(|at| self.queue.add(at));
    }

    async fn reconcile(
        &self,
        registry: &Registry,
        object: &SystemObject,
    ) -> Result<ReconcileOutcome, Box<Status>> {
        let current = registry.get_stored(&object.reference).await?;
        let current = current.as_ref().map(|stored| stored.object());
        if let Some(desired) = (object.desired)(current) {
            if current.is_none() && !namespace_exists(registry, &object.reference).await? {
                // Enqueued again when the namespace is created.
                return Ok(ReconcileOutcome::Done);
            }
            write(registry, &object.reference, desired, current.is_some()).await?;
            // The event of this write enqueues the object again, for the status.
            return Ok(ReconcileOutcome::Done);
        }
        let status =
            object.desired_status.as_ref().filter(|_| current.is_some()).and_then(|status| status(current));
        if let Some(status) = status {
            registry.update_status(&context(), &object.reference.resource, status).await?;
        }
        Ok(ReconcileOutcome::Done)
    }
}

fn namespaces() -> GroupResource {
    GroupResource::new("", "namespaces")
}

/// Returns true if the object is cluster-scoped or its namespace exists.
async fn namespace_exists(registry: &Registry, reference: &ObjectRef) -> Result<bool, Box<Status>> {
    if reference.namespace.is_empty() {
        return Ok(true);
    }
    let namespace =
        ObjectRef { resource: namespaces(), namespace: String::new(), name: reference.namespace.clone() };
    Ok(registry.get_stored(&namespace).await?.is_some())
}

fn context() -> Context {
    Context::system("system:apiserver")
}

/// Creates or updates an object. Sets namespace and name of a new object; the decision has set its content.
async fn write(
    registry: &Registry,
    reference: &ObjectRef,
    mut desired: Object,
    exists: bool,
) -> Result<(), Box<Status>> {
    if !exists {
        if !reference.namespace.is_empty() {
            desired.set(&["metadata", "namespace"], &reference.namespace);
        }
        desired.set(&["metadata", "name"], &reference.name);
    }
    let (context, options) = (context(), CreateOptions::default());
    let written = match exists {
        true => registry.update(&context, &reference.resource, ObjectPart::Main, desired, &options).await,
        false => registry.create(&context, &reference.resource, desired, &options).await,
    };
    ignore_reasons(written, &[Reason::AlreadyExists])
}

impl Listener for SystemObjects {
    fn resync<'a>(&'a self, _registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        self.enqueue_all();
        Box::pin(async { Ok(()) })
    }

    fn on_event(&self, change: &LogEntry) {
        let is_changed = |at: &ObjectRef| {
            at.name == change.name()
                && at.namespace == change.namespace()
                && at.resource == *change.resource()
        };
        if self.source.as_ref() == Some(change.resource()) {
            self.enqueue_all();
        }
        let is_namespace = *change.resource() == namespaces();
        for (index, object) in self.objects.iter().enumerate() {
            if is_changed(&object.reference) || is_namespace && object.reference.namespace == change.name() {
                self.queue.add(index);
            }
        }
    }
}
