//! `persistentvolumeclaim-protection-controller` and `persistentvolume-protection-controller`: remove the finalizer of a claim or
//! volume that is being deleted once it is unused.

mod decision;

use futures::future::BoxFuture;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::{ListOptions, LogEntry, ObjectPart, Registry, UpdateOptions};

use self::decision::{ProtectionStep, claims_of, is_bound, may_release, uses};
use crate::account::{NamespacedName, service_account_context};
use crate::log::Listener;
use crate::write_result::ignore_reasons;

/// Name of the controller of claims in kube-controller-manager.
pub const CLAIMS: &str = "persistentvolumeclaim-protection-controller";
/// Name of the controller of volumes in kube-controller-manager.
pub const VOLUMES: &str = "persistentvolume-protection-controller";

/// Number of workers upstream.
const WORKERS: usize = 1;

/// One of the two controllers. Cheap to clone.
#[derive(Clone)]
pub struct VolumeProtection {
    protected: ProtectedKind,
    queue: WorkQueue<NamespacedName>,
}

/// Kind of the protected objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProtectedKind {
    Claims,
    Volumes,
}

impl ProtectedKind {
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

    /// Returns true if a pod uses the claim, or a claim uses the volume.
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
        let queue = WorkQueue::with_metrics("pvcprotection", BackoffPolicy::CONTROLLER, queues);
        Self { protected: ProtectedKind::Claims, queue }
    }

    /// Creates the controller of volumes.
    #[must_use]
    pub fn of_volumes(queues: &QueueMetrics) -> Self {
        let queue = WorkQueue::with_metrics("pvprotection", BackoffPolicy::CONTROLLER, queues);
        Self { protected: ProtectedKind::Volumes, queue }
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
        if ProtectionStep::for_object(object, self.protected.finalizer()).is_some() {
            self.queue.add(NamespacedName::new(object.namespace(), object.name()));
        }
    }

    /// Enqueues the claims of a pod that does not use them, or no longer.
    fn on_pod(&self, change: &LogEntry) {
        let stored = change.stored();
        let pod = stored.object();
        if change.is_deleted() || may_release(pod) {
            for claim in claims_of(pod) {
                self.queue.add(NamespacedName::new(pod.namespace(), &claim));
            }
        }
    }
}

async fn reconcile(
    registry: &Registry,
    protected: ProtectedKind,
    key: &NamespacedName,
) -> Result<ReconcileOutcome, Box<Status>> {
    let resource = protected.resource();
    let Some(stored) = registry.get_stored(&key.object_ref("", &resource.resource)).await? else {
        return Ok(ReconcileOutcome::Done);
    };
    let object = stored.object();
    let changed = match ProtectionStep::for_object(object, protected.finalizer()) {
        None => return Ok(ReconcileOutcome::Done),
        Some(ProtectionStep::Release) if protected.is_used(registry, object).await? => {
            return Ok(ReconcileOutcome::Done);
        }
        Some(step) => step.applied_to(object, protected.finalizer()),
    };
    let context = service_account_context(protected.user());
    let written =
        registry.update(&context, &resource, ObjectPart::Main, changed, &UpdateOptions::default()).await;
    // An event delivers the newer state.
    ignore_reasons(written, &[Reason::NotFound, Reason::Conflict])?;
    Ok(ReconcileOutcome::Done)
}

impl Listener for VolumeProtection {
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&self.protected.resource(), "", &ListOptions::default()).await?.items;
            all.iter().for_each(|stored| self.enqueue(stored.object()));
            Ok(())
        })
    }

    fn on_event(&self, change: &LogEntry) {
        let resource = change.resource();
        if *resource == self.protected.resource() {
            if !change.is_deleted() {
                self.enqueue(change.stored().object());
            }
        } else if self.protected == ProtectedKind::Claims && *resource == pods() {
            self.on_pod(change);
        }
    }
}

fn pods() -> GroupResource {
    GroupResource::new("", "pods")
}
