//! Reconcile loop of the remote controller: decide, probe if necessary, decide again.
//!
//! Workers never wait for the network. A probe runs in a separate task, behind one of two semaphores: backends whose last
//! probe timed out have their own, so that unresponsive backends do not delay probes of healthy ones.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{ReconcileOutcome, run_workers};
use portico_machinery::resolve::ApiServiceFacts;
use portico_machinery::time;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::cache::{PROBE_INTERVAL, ProbeLookup};
use super::controller::Availability;
use super::decision::{
    AvailabilityVerdict, ConditionStatus, Decision, ProbePlan, decide_probed, decide_remote,
};
use super::peers::UnreachedDecision;
use super::probe::{Prober, run_attempts};

/// Number of workers upstream.
const WORKERS: usize = 5;

impl<P: Prober> Availability<P> {
    /// Starts the workers of the remote controller (hook `apiservice-status-remote-available-controller`). They end with
    /// `tasks`.
    pub fn run_remote(&self, tasks: &TaskSet) {
        let (queue, controller) = (self.inner.remote.clone(), self.clone());
        let probes = tasks.clone();
        run_workers(tasks, "remote-availability", WORKERS, queue, move |name: Arc<str>| {
            let delay = reconcile(&controller, &probes, &name);
            async move {
                Ok::<_, Infallible>(delay.map_or(ReconcileOutcome::Done, ReconcileOutcome::RequeueAfter))
            }
        });
    }
}

/// Returns the delay before the next reconciliation.
fn reconcile<P: Prober>(controller: &Availability<P>, tasks: &TaskSet, name: &Arc<str>) -> Option<Duration> {
    let inner = &controller.inner;
    let facts = inner.informers.index();
    let Some(service) = facts.api_service(name) else {
        controller.forget(name);
        return None;
    };
    match decide_remote(service, facts.services(), inner.mode) {
        None => {
            inner.cache.lock().forget(name);
            inner.peers.lock().forget(name);
            None
        }
        Some(Decision::Final(verdict)) => {
            controller.report(service, verdict);
            Some(PROBE_INTERVAL)
        }
        Some(Decision::Probe(plan)) => {
            let now = Instant::now();
            let (next, reached) = {
                let mut cache = inner.cache.lock();
                (cache.lookup(plan, now), cache.is_reached_by_facade(name, now))
            };
            match next {
                ProbeLookup::Running => None,
                ProbeLookup::Start { plan, cancelled, slow } => {
                    start_probe(controller, tasks, plan, cancelled, slow);
                    None
                }
                ProbeLookup::Fresh(outcome, fresh_for) => {
                    let verdict = decide_probed(&outcome.plan, &outcome.result, reached);
                    Some(report(controller, service, verdict).map_or(fresh_for, |wait| wait.min(fresh_for)))
                }
            }
        }
    }
}

/// Reports a verdict unless other control services must be considered. Returns the time for which they may still object.
fn report<P: Prober>(
    controller: &Availability<P>,
    service: &ApiServiceFacts,
    verdict: AvailabilityVerdict,
) -> Option<Duration> {
    let mut peers = controller.inner.peers.lock();
    if verdict.status == ConditionStatus::True {
        peers.forget(&service.name);
        controller.report(service, verdict);
        return None;
    }
    match peers.decide_unreached(&service.name, service.is_available(), Instant::now()) {
        UnreachedDecision::Report => controller.report(service, verdict),
        UnreachedDecision::ReportedByPeer => controller.defer_to_peer(&service.name, service.is_available()),
        UnreachedDecision::Wait(rest) => return Some(rest),
    }
    None
}

fn start_probe<P: Prober>(
    controller: &Availability<P>,
    tasks: &TaskSet,
    plan: Arc<ProbePlan>,
    mut cancelled: oneshot::Receiver<()>,
    slow: bool,
) {
    let controller = controller.clone();
    tasks.spawn_until_cancelled("availability-probe", async move {
        let inner = &controller.inner;
        let gate = if slow { &inner.limits.slow } else { &inner.limits.fast };
        let probed = async {
            // The semaphores are never closed.
            let _permit = gate.acquire().await.ok();
            // Boxed from here on, so that thousands of tasks that wait for a permit stay small.
            Box::pin(run_attempts(&inner.prober, &plan)).await
        };
        let result = tokio::select! {
            // The sender is only ever dropped: an error means cancellation.
            _ = &mut cancelled => return,
            result = probed => result,
        };
        let since = time::rfc3339(Timestamp::now());
        let neighbours = inner.cache.lock().finish(&plan, result, Instant::now(), since);
        inner.remote.add(plan.name.clone());
        neighbours.into_iter().for_each(|name| inner.remote.add(name));
        // Kept until here: a closed channel means that no probe is running.
        drop(cancelled);
    });
}
