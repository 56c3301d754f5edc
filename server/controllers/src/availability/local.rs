//! Reconcile loop of the local controller: APIServices without a Service are always available.

use std::convert::Infallible;
use std::sync::Arc;

use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{ReconcileOutcome, run_workers};

use super::controller::Availability;
use super::decision::decide_local;
use super::probe::Prober;

/// Number of workers upstream.
const WORKERS: usize = 5;

impl<P: Prober> Availability<P> {
    /// Starts the workers of the local controller (hook `apiservice-status-local-available-controller`). They end with
    /// `tasks`.
    pub fn run_local(&self, tasks: &TaskSet) {
        let (queue, controller) = (self.inner.local.clone(), self.clone());
        run_workers(tasks, "local-availability", WORKERS, queue, move |name: Arc<str>| {
            reconcile(&controller, &name);
            async { Ok::<_, Infallible>(ReconcileOutcome::Done) }
        });
    }
}

fn reconcile<P: Prober>(controller: &Availability<P>, name: &Arc<str>) {
    let facts = controller.inner.informers.index();
    let Some(facts) = facts.api_service(name) else { return controller.forget(name) };
    if let Some(verdict) = decide_local(facts) {
        controller.report(facts, verdict);
    }
}
