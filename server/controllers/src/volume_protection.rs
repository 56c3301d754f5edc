//! `persistentvolumeclaim-protection-controller` and `persistentvolume-protection-controller`: remove the finalizer of a claim or
//! volume that is being deleted once it is unused.

mod decide;

use futures::future::BoxFuture;
use portico_kit::backoff::Policy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, Reconciled, WorkQueue, run_workers};
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::{ListOptions, Logged, Part, Registry, UpdateOptions};

use self::decide::{Step, claims_of, is_bound, may_release, uses};
use crate::account::{NamespacedName, account};
use crate::log::Listener;
use crate::outcome::unless;

/// Name of the controller of claims in kube-controller-manager.
pub const CLAIMS: &str = "persistentvolumeclaim-protection-controller";
/// Name of the controller of volumes in kube-controller-manager.
pub const VOLUMES: &str = "persistentvolume-protection-controller";

/// Number of workers upstream.
const WORKERS: usize = 1;

/// One of the two controllers. Cheap to clone.
#[derive(Clone)]
pub struct VolumeProtection {
    protected: Protected,
    queue: WorkQueue<NamespacedName>,
}

/// Kind of the protected objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protected {
    Claims,
    Volumes,
}

impl Protected {
    fn controller(self) -> &'static str {
        match self {
            Self::Claims => CLAIMS,
            Self::Volumes => VOLUMES,
        }
    }

    fn user(self) -> &'static str {
        match self {
            Self::Claims => "pvc-protection-controller",
            Self::Volumes => "pv-protection-controller",
        }
    }

    fn finalizer(self) -> &'static str {
        match self {
            Self::Claims => "kubernetes.io/pvc-protection",
            Self::Volumes => "kubernetes.io/pv-protection",
        }
    }

    fn resource(self) -> GroupResource {
        let resource = match self {
            Self::Claims => "persistentvolumeclaims",
            Self::Volumes => "persistentvolumes",
        };
        GroupResource::new("", resource)
    }

    /// True if a claim is used by a pod, or a volume by a claim.
    async fn is_used(self, registry: &Registry, object: &Object) -> Result<bool, Box<Status>> {
        match self {
            Self::Volumes => Ok(is_bound(object)),
            Self::Claims => {
                let pods = registry.list(&pods(), object.namespace(), &ListOptions::default()).await?.items;
                Ok(pods.iter().any(|pod| uses(pod.object(), object)))
            }
        }
    }
}

impl VolumeProtection {
    /// Creates the controller of claims.
    #[must_use]
    pub fn of_claims(queues: &QueueMetrics) -> Self {
        let queue = WorkQueue::with_metrics("pvcprotection", Policy::CONTROLLER, queues);
        Self { protected: Protected::Claims, queue }
    }

    /// Creates the controller of volumes.
    #[must_use]
    pub fn of_volumes(queues: &QueueMetrics) -> Self {
        let queue = WorkQueue::with_metrics("pvprotection", Policy::CONTROLLER, queues);
        Self { protected: Protected::Volumes, queue }
    }

    /// Starts the worker, which runs until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (protected, registry) = (self.protected, registry.clone());
        run_workers(tasks, protected.controller(), WORKERS, self.queue.clone(), move |key| {
            let registry = registry.clone();
            async move { reconcile(&registry, protected, &key).await }
        });
    }

    fn enqueue(&self, object: &Object) {
        if Step::of(object, self.protected.finalizer()).is_some() {
            self.queue.add(NamespacedName::new(object.namespace(), object.name()));
        }
    }

    /// Enqueues the claims of a pod that does not use them, or no longer.
    fn on_pod(&self, change: &Logged) {
        let stored = change.stored();
        let pod = stored.object();
        if change.is_gone() || may_release(pod) {
            for claim in claims_of(pod) {
                self.queue.add(NamespacedName::new(pod.namespace(), &claim));
            }
        }
    }
}

async fn reconcile(
    registry: &Registry,
    protected: Protected,
    key: &NamespacedName,
) -> Result<Reconciled, Box<Status>> {
    let resource = protected.resource();
    let Some(stored) = registry.get_stored(&key.of("", &resource.resource)).await? else {
        return Ok(Reconciled::Done);
    };
    let object = stored.object();
    let changed = match Step::of(object, protected.finalizer()) {
        None => return Ok(Reconciled::Done),
        Some(Step::Release) if protected.is_used(registry, object).await? => return Ok(Reconciled::Done),
        Some(step) => step.applied_to(object, protected.finalizer()),
    };
    let context = account(protected.user());
    let written = registry.update(&context, &resource, Part::Main, changed, &UpdateOptions::default()).await;
    // An event delivers the newer state.
    unless(written, &[Reason::NotFound, Reason::Conflict])?;
    Ok(Reconciled::Done)
}

impl Listener for VolumeProtection {
    fn begin<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&self.protected.resource(), "", &ListOptions::default()).await?.items;
            all.iter().for_each(|stored| self.enqueue(stored.object()));
            Ok(())
        })
    }

    fn on_event(&self, change: &Logged) {
        let resource = change.resource();
        if *resource == self.protected.resource() {
            if !change.is_gone() {
                self.enqueue(change.stored().object());
            }
        } else if self.protected == Protected::Claims && *resource == pods() {
            self.on_pod(change);
        }
    }
}

fn pods() -> GroupResource {
    GroupResource::new("", "pods")
}
