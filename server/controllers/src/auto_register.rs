//! Maintains an APIService for every group version that this server serves itself (hook `kube-apiserver-autoregistration`).
//!
//! APIServices of built-in group versions are managed on start, those of CRDs always. The module does not depend on CRDs:
//! their controller calls [`AutoRegister::add_desired`] and [`AutoRegister::remove_desired`].

mod completion;
mod decision;
#[cfg(test)]
mod tests;
mod write;

pub use completion::Completion;
pub use decision::{CurrentApiService, DesiredApiService, ManagedMode, SyncAction, SyncState, decide};

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::lifecycle::Signal;
use portico_kit::metrics::Registry as MetricsRegistry;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::Status;
use portico_machinery::resolve::{AffectedApiServices, RoutingFacts};
use portico_registry::Registry;

use portico_routes::informers::Informers;
use write::ApiServiceWriter;

/// Number of workers. Upstream has 5; here concurrent writes share one commit, and the first start creates about 60 objects.
const WORKERS: usize = 32;

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct AutoRegister {
    inner: Arc<Inner>,
}

struct Inner {
    informers: Informers,
    queue: WorkQueue<Arc<str>>,
    state: Mutex<RegistrationState>,
    completion: Completion,
}

#[derive(Default)]
struct RegistrationState {
    desired: HashMap<Arc<str>, Arc<DesiredApiService>>,
    /// Managed APIServices that existed when the informers had synced.
    present_at_start: Option<HashSet<Arc<str>>>,
    synced: HashSet<Arc<str>>,
}

impl AutoRegister {
    /// Creates the controller and subscribes to the informers; must be called before they run. `built_in` are the group
    /// versions of the local chain, desired on start. The registration API's own group never gets an APIService.
    #[must_use]
    pub fn new(
        informers: &Informers,
        built_in: impl IntoIterator<Item = DesiredApiService>,
        metrics: &MetricsRegistry,
    ) -> Self {
        let built_in = built_in.into_iter().filter(|d| d.group_version.group != "apiregistration.k8s.io");
        let desired: HashMap<Arc<str>, Arc<DesiredApiService>> =
            built_in.map(|d| (d.group_version.api_service_name().into(), Arc::new(d))).collect();
        let queue =
            WorkQueue::with_metrics("autoregister", BackoffPolicy::CONTROLLER, &QueueMetrics::new(metrics));
        desired.keys().for_each(|name| queue.add(name.clone()));
        let controller = Self {
            inner: Arc::new(Inner {
                informers: informers.clone(),
                queue,
                completion: Completion::new(desired.keys().cloned()),
                state: Mutex::new(RegistrationState { desired, ..RegistrationState::default() }),
            }),
        };
        // A weak reference avoids a cycle between the informers' handler and the controller.
        let weak = Arc::downgrade(&controller.inner);
        informers.on_change(Arc::new(move |facts, touched, _| {
            if let Some(inner) = weak.upgrade() {
                inner.observe(facts, touched);
            }
        }));
        controller
    }

    /// Returns the check `autoregister-completion`.
    #[must_use]
    pub fn completion(&self) -> Completion {
        self.inner.completion.clone()
    }

    /// Adds a group version of a CRD: its APIService is always managed.
    pub fn add_desired(&self, desired: DesiredApiService) {
        let name: Arc<str> = desired.group_version.api_service_name().into();
        self.inner.state.lock().desired.insert(name.clone(), Arc::new(desired));
        self.inner.queue.add(name);
    }

    /// Removes a group version that is no longer served: its APIService is deleted if this controller manages it.
    pub fn remove_desired(&self, name: &str) {
        let name: Arc<str> = name.into();
        self.inner.state.lock().desired.remove(&name);
        self.inner.queue.add(name);
    }

    /// Starts the workers once the informers have synced and `crds_synced` is set (after the initial pass over all CRDs; `None`
    /// without CRDs). Earlier, APIServices of CRDs would be deleted as unwanted. The workers end with `tasks`.
    pub async fn run(self, registry: Registry, crds_synced: Option<Signal>, tasks: TaskSet) {
        let ready = async {
            self.inner.informers.synced().signaled().await;
            if let Some(first) = crds_synced {
                first.signaled().await;
            }
        };
        if tasks.token().run_until_cancelled(ready).await.is_none() {
            return;
        }
        let (queue, writer) = (self.inner.queue.clone(), Arc::new(ApiServiceWriter::new(registry)));
        run_workers(&tasks, "autoregister", WORKERS, queue, move |name: Arc<str>| {
            let (controller, writer) = (self.clone(), writer.clone());
            async move { controller.reconcile(&name, &writer).await.map(|()| ReconcileOutcome::Done) }
        });
    }

    async fn reconcile(&self, name: &Arc<str>, writer: &ApiServiceWriter) -> Result<(), Box<Status>> {
        let (action, desired, uid) = self.inner.decide(name);
        writer.apply(action, name, desired.as_deref(), &uid).await?;
        self.inner.state.lock().synced.insert(name.clone());
        Ok(())
    }
}

impl Inner {
    /// Enqueues managed and desired APIServices. Unmanaged ones are skipped because there can be many.
    fn observe(&self, facts: &RoutingFacts, touched: &AffectedApiServices) {
        self.completion.observe(facts, touched);
        let mut state = self.state.lock();
        let managed = |name: &str| {
            facts.api_service(name).is_some_and(|f| ManagedMode::parse(f.automanaged.as_deref()).is_some())
        };
        if state.present_at_start.is_none() {
            // The first event of new informers contains all existing objects.
            let present = facts.api_services().map(|f| &f.name).filter(|name| managed(name)).cloned();
            state.present_at_start = Some(present.collect());
        }
        for name in touched {
            if managed(name) || state.desired.contains_key(name) {
                self.queue.add(name.clone());
            }
        }
    }

    fn decide(&self, name: &Arc<str>) -> (SyncAction, Option<Arc<DesiredApiService>>, String) {
        let facts = self.informers.index();
        let facts = facts.api_service(name);
        let state = self.state.lock();
        let desired = state.desired.get(name).cloned();
        let current = facts.map(|facts| CurrentApiService {
            managed: ManagedMode::parse(facts.automanaged.as_deref()),
            spec_matches: desired.as_ref().is_some_and(|d| d.is_spec_of(facts)),
        });
        let sync_state = SyncState {
            present_at_start: state.present_at_start.as_ref().is_some_and(|p| p.contains(name)),
            synced: state.synced.contains(name),
        };
        let action = decide(current, desired.as_ref().map(|d| d.mode), sync_state);
        (action, desired, facts.map(|f| f.uid.clone()).unwrap_or_default())
    }
}
