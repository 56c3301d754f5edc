//! Individual objects that kube-apiserver itself maintains: created when missing, corrected when changed, recreated when deleted.
//!
//! The pure functions in the submodules decide their content. `--controllers` does not affect these objects.

pub mod authentication;
pub mod kubernetes_service;
pub mod token_tracking;

use std::sync::Arc;

use futures::future::BoxFuture;
use portico_kit::backoff::Policy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, Reconciled, WorkQueue, run_workers};
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::{Context, CreateOptions, Logged, ObjectRef, Part, Registry};

use crate::log::Listener;
use crate::outcome::unless;

/// Computes an object from the current one; `None` if it is up to date or cannot be decided yet.
type Wanted = Arc<dyn Fn(Option<&Object>) -> Option<Object> + Send + Sync>;

/// One maintained object.
#[derive(Clone)]
pub struct SystemObject {
    at: ObjectRef,
    wanted: Wanted,
    /// Computes the status, once the object exists.
    status: Option<Wanted>,
}

impl SystemObject {
    /// Creates a maintained object from its resource, namespace (empty at cluster scope), name and content.
    pub fn new(
        resource: GroupResource,
        namespace: &str,
        name: &str,
        wanted: impl Fn(Option<&Object>) -> Option<Object> + Send + Sync + 'static,
    ) -> Self {
        let at = ObjectRef { resource, namespace: namespace.to_owned(), name: name.to_owned() };
        Self { at, wanted: Arc::new(wanted), status: None }
    }

    /// Adds a maintained status.
    #[must_use]
    pub fn with_status(
        mut self,
        status: impl Fn(Option<&Object>) -> Option<Object> + Send + Sync + 'static,
    ) -> Self {
        self.status = Some(Arc::new(status));
        self
    }
}

/// Controller of system objects. Cheap to clone.
#[derive(Clone)]
pub struct SystemObjects {
    objects: Arc<[SystemObject]>,
    /// Resource that the content depends on: its changes affect all objects.
    made_of: Option<GroupResource>,
    queue: WorkQueue<usize>,
}

impl SystemObjects {
    /// Creates the controller. Objects that others refer to come first. A change of `source` affects all objects.
    #[must_use]
    pub fn new(objects: Vec<SystemObject>, made_of: Option<GroupResource>, metrics: &QueueMetrics) -> Self {
        let queue = WorkQueue::with_metrics("system_objects", Policy::RECONNECT, metrics);
        Self { objects: objects.into(), made_of, queue }
    }

    /// Starts the worker, which writes one object at a time, in their order, until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, registry) = (self.clone(), registry.clone());
        run_workers(tasks, "system-objects", 1, self.queue.clone(), move |at| {
            let (worker, registry) = (worker.clone(), registry.clone());
            async move { worker.keep(&registry, &worker.objects[at]).await }
        });
    }

    /// Reconciles all objects, because data that they depend on has changed.
    pub fn look_again(&self) {
        (0..self.objects.len()).for_each(|at| self.queue.add(at));
    }

    async fn keep(&self, registry: &Registry, object: &SystemObject) -> Result<Reconciled, Box<Status>> {
        let current = registry.get_stored(&object.at).await?;
        let current = current.as_ref().map(|stored| stored.object());
        if let Some(wanted) = (object.wanted)(current) {
            if current.is_none() && !has_home(registry, &object.at).await? {
                // Enqueued again when the namespace is created.
                return Ok(Reconciled::Done);
            }
            write(registry, &object.at, wanted, current.is_some()).await?;
            // The event of this write enqueues the object again, for the status.
            return Ok(Reconciled::Done);
        }
        let status = object.status.as_ref().filter(|_| current.is_some()).and_then(|status| status(current));
        if let Some(status) = status {
            registry.update_status(&context(), &object.at.resource, status).await?;
        }
        Ok(Reconciled::Done)
    }
}

fn namespaces() -> GroupResource {
    GroupResource::new("", "namespaces")
}

/// Returns true if the object is cluster-scoped or its namespace exists.
async fn has_home(registry: &Registry, at: &ObjectRef) -> Result<bool, Box<Status>> {
    if at.namespace.is_empty() {
        return Ok(true);
    }
    let home = ObjectRef { resource: namespaces(), namespace: String::new(), name: at.namespace.clone() };
    Ok(registry.get_stored(&home).await?.is_some())
}

fn context() -> Context {
    Context::system("system:apiserver")
}

/// Creates or updates an object. Sets namespace and name of a new object; the decision has set its content.
async fn write(
    registry: &Registry,
    at: &ObjectRef,
    mut wanted: Object,
    exists: bool,
) -> Result<(), Box<Status>> {
    if !exists {
        if !at.namespace.is_empty() {
            wanted.set(&["metadata", "namespace"], &at.namespace);
        }
        wanted.set(&["metadata", "name"], &at.name);
    }
    let (context, options) = (context(), CreateOptions::default());
    let written = match exists {
        true => registry.update(&context, &at.resource, Part::Main, wanted, &options).await,
        false => registry.create(&context, &at.resource, wanted, &options).await,
    };
    unless(written, &[Reason::AlreadyExists])
}

impl Listener for SystemObjects {
    fn begin<'a>(&'a self, _registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        self.look_again();
        Box::pin(async { Ok(()) })
    }

    fn on_event(&self, change: &Logged) {
        let is = |at: &ObjectRef| {
            at.name == change.name()
                && at.namespace == change.namespace()
                && at.resource == *change.resource()
        };
        if self.made_of.as_ref() == Some(change.resource()) {
            self.look_again();
        }
        let is_namespace = *change.resource() == namespaces();
        for (index, object) in self.objects.iter().enumerate() {
            if is(&object.at) || is_namespace && object.at.namespace == change.name() {
                self.queue.add(index);
            }
        }
    }
}
