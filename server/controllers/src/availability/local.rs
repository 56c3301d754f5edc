//! The loop of the local controller: APIServices without a Service are always available.

use std::convert::Infallible;
use std::sync::Arc;

use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{Reconciled, run_workers};

use super::Availability;
use super::decide::judge_local;
use super::probe::Prober;

/// Upstream's.
const WORKERS: usize = 5;

pub(super) fn run<P: Prober>(controller: &Availability<P>, tasks: &TaskSet) {
    let (queue, controller) = (controller.inner.local.clone(), controller.clone());
    run_workers(tasks, "local-availability", WORKERS, queue, move |name: Arc<str>| {
        reconcile(&controller, &name);
        async { Ok::<_, Infallible>(Reconciled::Done) }
    });
}

fn reconcile<P: Prober>(controller: &Availability<P>, name: &Arc<str>) {
    let facts = controller.inner.informers.facts();
    let Some(facts) = facts.api_service(name) else { return controller.forget(name) };
    if let Some(verdict) = judge_local(facts) {
        controller.say(facts, verdict);
    }
}
