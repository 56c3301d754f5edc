//! Single objects that kube-apiserver itself keeps: made when missing, put right when changed, put back when deleted.
//!
//! What they hold is decided by the pure functions below this module; `--controllers` does not govern them.

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

/// What an object should be, from what is there; nothing when that is right, or when it cannot be decided yet.
type Wanted = Arc<dyn Fn(Option<&Object>) -> Option<Object> + Send + Sync>;

/// One object that is kept.
#[derive(Clone)]
pub struct SystemObject {
    at: ObjectRef,
    wanted: Wanted,
    /// The same of its status, once the object is there.
    status: Option<Wanted>,
}

impl SystemObject {
    /// An object of this resource, namespace (empty at cluster scope) and name.
    pub fn new(
        resource: GroupResource,
        namespace: &str,
        name: &str,
        wanted: impl Fn(Option<&Object>) -> Option<Object> + Send + Sync + 'static,
    ) -> Self {
        let at = ObjectRef { resource, namespace: namespace.to_owned(), name: name.to_owned() };
        Self { at, wanted: Arc::new(wanted), status: None }
    }

    /// With a status that is kept, too.
    #[must_use]
    pub fn with_status(
        mut self,
        status: impl Fn(Option<&Object>) -> Option<Object> + Send + Sync + 'static,
    ) -> Self {
        self.status = Some(Arc::new(status));
        self
    }
}

/// Keeps them. Cheap to clone.
#[derive(Clone)]
pub struct SystemObjects {
    objects: Arc<[SystemObject]>,
    /// What they are made of: a change of it concerns all.
    made_of: Option<GroupResource>,
    queue: WorkQueue<usize>,
}

impl SystemObjects {
    /// Keeps these; those that others refer to come first. A change of `made_of` concerns all of them.
    #[must_use]
    pub fn new(objects: Vec<SystemObject>, made_of: Option<GroupResource>, metrics: &QueueMetrics) -> Self {
        let queue = WorkQueue::with_metrics("system_objects", Policy::RECONNECT, metrics);
        Self { objects: objects.into(), made_of, queue }
    }

    /// Starts what writes, until `tasks` is cancelled: one at a time, in their order.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, registry) = (self.clone(), registry.clone());
        run_workers(tasks, "system-objects", 1, self.queue.clone(), move |at| {
            let (worker, registry) = (worker.clone(), registry.clone());
            async move { worker.keep(&registry, &worker.objects[at]).await }
        });
    }

    /// Looks at all of them again: what they are made of has changed.
    pub fn look_again(&self) {
        (0..self.objects.len()).for_each(|at| self.queue.add(at));
    }

    async fn keep(&self, registry: &Registry, object: &SystemObject) -> Result<Reconciled, Box<Status>> {
        let current = registry.get_stored(&object.at).await?;
        let current = current.as_ref().map(|stored| stored.object());
        if let Some(wanted) = (object.wanted)(current) {
            if current.is_none() && !has_home(registry, &object.at).await? {
                // The namespace's creation brings it back here.
                return Ok(Reconciled::Done);
            }
            write(registry, &object.at, wanted, current.is_some()).await?;
            // Its own event brings it back here, for the status.
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

/// Whether the namespace that an object belongs into is there, if it is to be in one.
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

/// What is new gets its namespace and name here: the decisions make its content.
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
