//! Results of probes, and reports of facades: the state of the remote controller.
//!
//! Times are passed in as values. The module does not depend on how probes are made.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use portico_kit::backoff::{BackoffPolicy, KeyLimiter};
use portico_machinery::route::Target;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::decision::{ConditionStatus, ProbePlan, decide_probed};
use super::probe::{ProbeFailure, ProbeStage};

/// Interval between two probes of a reachable backend.
pub const PROBE_INTERVAL: Duration = Duration::from_secs(30);
/// Time for which a facade's report of success is valid, unless the facade repeats it.
pub const FACADE_REPORT_TTL: Duration = Duration::from_secs(60);
/// Backoff for failing backends: 250 ms before the next probe, doubled each time, up to the probe interval.
const RETRY: BackoffPolicy = BackoffPolicy::new(Duration::from_millis(250), PROBE_INTERVAL, 2.0, 0.0);
/// Minimum time between two probes of a backend that facades report as failing.
const MIN_PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Result of a probe of one plan.
#[derive(Clone, Debug)]
pub struct ProbeOutcome {
    pub plan: Arc<ProbePlan>,
    pub result: Result<(), ProbeFailure>,
    pub finished_at: Instant,
    /// Wall time since which the result is the same, RFC 3339.
    pub since: String,
    valid_until: Instant,
}

impl ProbeOutcome {
    /// Expires the outcome now, but no earlier than [`MIN_PROBE_INTERVAL`] after the probe. Returns the time until then.
    fn expire_soon(&mut self, now: Instant) -> Duration {
        let due = now.max(self.finished_at + MIN_PROBE_INTERVAL);
        self.valid_until = self.valid_until.min(due);
        due - now
    }
}

/// Report of a facade about a backend.
#[derive(Clone, Debug)]
pub struct FacadeReport {
    /// Stage at which requests fail; `None` if the facade reaches the backend.
    pub failed_at: Option<ProbeStage>,
    /// Human-readable details.
    pub detail: String,
    /// Wall time since which the state is the same, RFC 3339.
    pub since: String,
    received_at: Instant,
}

impl FacadeReport {
    /// Returns true if the report is valid. A failure is valid until the facade reports success: facades do not repeat failures.
    fn is_valid(&self, now: Instant) -> bool {
        self.failed_at.is_some() || now < self.received_at + FACADE_REPORT_TTL
    }
}

struct RunningProbe {
    plan: Arc<ProbePlan>,
    /// Dropped to cancel the probe.
    cancel: oneshot::Sender<()>,
}

/// Result of looking up a plan in the cache.
pub enum ProbeLookup {
    /// The outcome is known and stays fresh for this duration.
    Fresh(ProbeOutcome, Duration),
    /// The plan is being probed; the name is enqueued again when the probe ends.
    Running,
    /// The plan must be probed now.
    Start {
        plan: Arc<ProbePlan>,
        /// Resolves when the probe is no longer needed.
        cancelled: oneshot::Receiver<()>,
        /// True if the last probe timed out: the probe waits for a permit for slow backends.
        slow: bool,
    },
}

/// Outcomes, running probes and reports of facades, by the name of the APIService.
pub struct ProbeCache {
    outcomes: HashMap<Arc<str>, ProbeOutcome>,
    running: HashMap<Arc<str>, RunningProbe>,
    /// Reports by facade. A vector, because there are few facades, usually one.
    reports: HashMap<Arc<str>, Vec<(Box<str>, FacadeReport)>>,
    limiter: KeyLimiter<Arc<str>>,
    /// APIServices probed because a connection was lost: if the probe fails, all that share an address are probed.
    canaries: HashSet<Arc<str>>,
}

impl Default for ProbeCache {
    fn default() -> Self {
        Self {
            outcomes: HashMap::new(),
            running: HashMap::new(),
            reports: HashMap::new(),
            limiter: KeyLimiter::new(RETRY),
            canaries: HashSet::new(),
        }
    }
}

impl ProbeCache {
    /// Looks up a plan, and cancels a probe of an older plan. Drops reports of facades that used other trust settings or date
    /// from before the APIService moved to other addresses. If the addresses have changed, also drops reports of failures.
    pub fn lookup(&mut self, plan: ProbePlan, now: Instant) -> ProbeLookup {
        let name = plan.name.clone();
        // The previous plan: reports of facades that arrive after this lookup refer to the new plan.
        let running = self.running.get(&name).map(|running| &running.plan);
        let last = running.or_else(|| self.outcomes.get(&name).map(|outcome| &outcome.plan));
        if let (Some(last), Some(reports)) = (last, self.reports.get_mut(&name)) {
            let (has_same_trust, same_targets) = (last.has_same_trust(&plan), last.targets == plan.targets);
            let is_applicable = has_same_trust && !plan.is_moved_from(last);
            reports.retain(|(_, report)| is_applicable && (same_targets || report.failed_at.is_none()));
        }
        if let Some(outcome) = self.outcomes.get(&name)
            && *outcome.plan == plan
            && now < outcome.valid_until
        {
            return ProbeLookup::Fresh(outcome.clone(), outcome.valid_until - now);
        }
        if self.running.get(&name).is_some_and(|r| *r.plan == plan && !r.cancel.is_closed()) {
            return ProbeLookup::Running;
        }
        let last = self.outcomes.get(&name);
        let slow = last
            .is_some_and(|o| o.result.as_ref().is_err_and(|f| f.timed_out) && o.plan.targets == plan.targets);
        let (cancel, cancelled) = oneshot::channel();
        let plan = Arc::new(plan);
        self.running.insert(name, RunningProbe { plan: plan.clone(), cancel });
        ProbeLookup::Start { plan, cancelled, slow }
    }

    /// Handles a connection that a backend closed. Returns one APIService that uses the address, and the delay after which it
    /// must be probed; each APIService is probed at most every [`MIN_PROBE_INTERVAL`].
    pub fn on_connection_lost(&mut self, target: &Target, now: Instant) -> Option<(Arc<str>, Duration)> {
        let uses = |(_, o): &(_, &mut ProbeOutcome)| o.result.is_ok() && o.plan.targets.contains(target);
        let (name, outcome) = self.outcomes.iter_mut().find(uses)?;
        self.canaries.insert(name.clone());
        Some((name.clone(), outcome.expire_soon(now)))
    }

    /// Handles the report that another control service no longer reaches the backend. Returns the delay before the next probe if
    /// the last probe reached the backend.
    pub fn expire_reached(&mut self, name: &str, now: Instant) -> Option<Duration> {
        let outcome = self.outcomes.get_mut(name).filter(|outcome| outcome.result.is_ok())?;
        Some(outcome.expire_soon(now))
    }

    /// Expires all reached APIServices that share an address with this failed plan, and returns their names. Reports of facades
    /// are dropped because they date from before the failure.
    fn expire_neighbors(&mut self, plan: &ProbePlan, now: Instant) -> Vec<Arc<str>> {
        let shares = |o: &ProbeOutcome| o.plan.targets.iter().any(|target| plan.targets.contains(target));
        let reached = self.outcomes.iter_mut().filter(|(_, o)| o.result.is_ok() && shares(o));
        let expire = |(name, outcome): (&Arc<str>, &mut ProbeOutcome)| {
            outcome.valid_until = now;
            name.clone()
        };
        let expired: Vec<_> = reached.map(expire).collect();
        expired.iter().chain([&plan.name]).for_each(|name| drop(self.reports.remove(name)));
        expired
    }

    /// Stores the result of a probe; ignored if the probe was canceled. Returns other APIServices that must be probed again.
    pub fn finish(
        &mut self,
        plan: &Arc<ProbePlan>,
        result: Result<(), ProbeFailure>,
        now: Instant,
        since: String,
    ) -> Vec<Arc<str>> {
        let name = &plan.name;
        if !self.running.get(name).is_some_and(|running| Arc::ptr_eq(&running.plan, plan)) {
            return Vec::new();
        }
        self.running.remove(name);
        let valid = match &result {
            Ok(()) => {
                self.limiter.forget(name);
                jittered_interval(plan)
            }
            Err(_) => self.limiter.when(name),
        };
        // A result equal to the last one keeps the time since which it applies.
        let since = match self.outcomes.get(name) {
            Some(last) if last.result == result => last.since.clone(),
            _ => since,
        };
        let failed = result.is_err();
        let outcome =
            ProbeOutcome { plan: plan.clone(), result, finished_at: now, since, valid_until: now + valid };
        self.outcomes.insert(name.clone(), outcome);
        let was_canary = self.canaries.remove(name);
        if was_canary && failed { self.expire_neighbors(plan, now) } else { Vec::new() }
    }

    /// Removes an APIService that is deleted or no longer has a backend.
    pub fn forget(&mut self, name: &str) {
        if let Some((name, _)) = self.outcomes.remove_entry(name) {
            self.limiter.forget(&name);
        }
        self.running.remove(name);
        self.reports.remove(name);
        self.canaries.remove(name);
    }

    /// Stores a report of a facade. Returns true if the APIService must be reconciled.
    pub fn record_report(
        &mut self,
        facade: &str,
        name: &Arc<str>,
        failed_at: Option<ProbeStage>,
        detail: &str,
        now: Instant,
        since: String,
    ) -> bool {
        let reports = match self.reports.get_mut(name) {
            Some(reports) => reports,
            None => self.reports.entry(name.clone()).or_default(),
        };
        let mut report = FacadeReport { failed_at, detail: detail.to_owned(), since, received_at: now };
        let has_changed = match reports.iter_mut().find(|(reporter, _)| **reporter == *facade) {
            Some((_, previous)) => {
                let has_changed = previous.failed_at.is_some() != failed_at.is_some();
                // A repeated state keeps the time of the first report.
                if previous.failed_at == failed_at && previous.is_valid(now) {
                    report.since = std::mem::take(&mut previous.since);
                }
                *previous = report;
                has_changed
            }
            None => {
                reports.reserve_exact(1);
                reports.push((facade.into(), report));
                true
            }
        };
        let Some(outcome) = self.outcomes.get_mut(name) else { return true };
        if failed_at.is_some() && outcome.result.is_ok() && now >= outcome.finished_at + MIN_PROBE_INTERVAL {
            outcome.valid_until = now;
            return true;
        }
        has_changed
    }

    /// Removes the reports of a facade that is no longer connected. Returns the APIServices that they were about.
    pub fn forget_facade(&mut self, facade: &str) -> Vec<Arc<str>> {
        let mut affected = Vec::new();
        self.reports.retain(|name, reports| {
            if let Some(index) = reports.iter().position(|(reporter, _)| **reporter == *facade) {
                reports.swap_remove(index);
                affected.push(name.clone());
            }
            !reports.is_empty()
        });
        affected
    }

    /// Returns true if a connected facade reaches the backend.
    #[must_use]
    pub fn is_reached_by_facade(&self, name: &str, now: Instant) -> bool {
        let reached = |(_, report): &(_, FacadeReport)| report.failed_at.is_none() && report.is_valid(now);
        self.reports.get(name).is_some_and(|hints| hints.iter().any(reached))
    }

    /// Returns the probed APIServices; true if the control service or a connected facade reaches the backend.
    pub fn reachability(&self, now: Instant) -> impl Iterator<Item = (&str, bool)> {
        self.outcomes.iter().map(move |(name, outcome)| {
            let by_facade = self.is_reached_by_facade(name, now);
            (
                &**name,
                decide_probed(&outcome.plan, &outcome.result, by_facade).status == ConditionStatus::True,
            )
        })
    }

    /// Returns the last outcome of an APIService.
    #[must_use]
    pub fn outcome(&self, name: &str) -> Option<&ProbeOutcome> {
        self.outcomes.get(name)
    }

    /// Returns the valid reports of facades about an APIService, sorted by facade.
    #[must_use]
    pub fn reports(&self, name: &str, now: Instant) -> Vec<(&str, &FacadeReport)> {
        let valid = self.reports.get(name).into_iter().flatten().filter(|(_, hint)| hint.is_valid(now));
        let mut reports: Vec<_> = valid.map(|(facade, hint)| (&**facade, hint)).collect();
        reports.sort_unstable_by_key(|(facade, _)| *facade);
        reports
    }

    /// Expires all outcomes after a change of the client certificate.
    pub fn expire_all(&mut self, now: Instant) {
        self.outcomes.values_mut().for_each(|outcome| outcome.valid_until = now);
        self.running.clear();
    }
}

/// Returns 80 to 100 % of the probe interval, so that backends that were registered together are not always probed together.
fn jittered_interval(plan: &ProbePlan) -> Duration {
    let share = u32::try_from(plan.fingerprint % 1000).unwrap_or(0);
    PROBE_INTERVAL - PROBE_INTERVAL / 5 / 1000 * share
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::availability::tests::plan;

    fn plan_for(name: &str, port: u16) -> ProbePlan {
        let targets = vec![Target { host: "10.0.0.1".into(), port }];
        ProbePlan { name: name.into(), targets, ..plan() }
    }

    fn run_probe(cache: &mut ProbeCache, plan: ProbePlan, ok: bool, now: Instant) -> Vec<Arc<str>> {
        let failure = || ProbeFailure { stage: ProbeStage::Dial, timed_out: false, message: "no".into() };
        let ProbeLookup::Start { plan, cancelled, .. } = cache.lookup(plan, now) else {
            panic!("the plan is not due for a probe")
        };
        let neighbours = cache.finish(&plan, if ok { Ok(()) } else { Err(failure()) }, now, String::new());
        drop(cancelled);
        neighbours
    }

    #[test]
    fn a_lost_connection_causes_one_probe_and_its_failure_expires_the_neighbors() {
        let (mut cache, start) = (ProbeCache::default(), Instant::now());
        for (name, port) in [("a", 1), ("b", 1), ("c", 2)] {
            run_probe(&mut cache, plan_for(name, port), true, start);
        }
        let target = Target { host: "10.0.0.1".into(), port: 1 };
        let later = start + MIN_PROBE_INTERVAL * 2;
        let (canary, delay) = cache.on_connection_lost(&target, later).unwrap();
        assert_eq!(delay, Duration::ZERO);
        cache.record_report("f", &canary, None, "", start, String::new());
        let other: Arc<str> = if &*canary == "a" { "b" } else { "a" }.into();
        assert!(
            matches!(cache.lookup(plan_for(&other, 1), later), ProbeLookup::Fresh(..)),
            "only one of the neighbors is probed"
        );
        let expired = run_probe(&mut cache, plan_for(&canary, 1), false, later);
        assert_eq!(expired, std::slice::from_ref(&other));
        assert!(!cache.is_reached_by_facade(&canary, later), "reports from before the failure are dropped");
        assert!(matches!(cache.lookup(plan_for(&other, 1), later), ProbeLookup::Start { .. }));
        assert!(matches!(cache.lookup(plan_for("c", 2), later), ProbeLookup::Fresh(..)));
    }

    #[test]
    fn reports_of_facades_are_dropped_when_the_apiservice_moves_to_another_backend() {
        let (mut cache, now) = (ProbeCache::default(), Instant::now());
        let old = plan_for("a", 1);
        run_probe(&mut cache, old.clone(), true, now);
        cache.record_report("f", &old.name, None, "", now, String::new());
        // The addresses behind the same Service changed: facades probably still reach the backend.
        run_probe(&mut cache, plan_for("a", 2), false, now);
        assert!(cache.is_reached_by_facade(&old.name, now));
        let moved = ProbePlan { fingerprint: old.fingerprint + 1, ..plan_for("a", 3) };
        run_probe(&mut cache, moved.clone(), false, now);
        assert!(!cache.is_reached_by_facade(&old.name, now));
        // A facade reaches the new backend before its probe has ended.
        let next = ProbePlan { fingerprint: old.fingerprint + 2, ..plan_for("a", 4) };
        let probe = cache.lookup(next.clone(), now);
        assert!(matches!(probe, ProbeLookup::Start { .. }));
        cache.record_report("f", &old.name, None, "", now, String::new());
        assert!(matches!(cache.lookup(next, now), ProbeLookup::Running));
        assert!(cache.is_reached_by_facade(&old.name, now));
    }

    #[test]
    fn a_backend_that_closes_after_each_response_is_probed_at_most_once_a_second() {
        let (mut cache, now) = (ProbeCache::default(), Instant::now());
        run_probe(&mut cache, plan_for("a", 1), true, now);
        let target = Target { host: "10.0.0.1".into(), port: 1 };
        assert_eq!(cache.on_connection_lost(&target, now), Some(("a".into(), MIN_PROBE_INTERVAL)));
        assert!(
            matches!(cache.lookup(plan_for("a", 1), now), ProbeLookup::Fresh(_, fresh) if fresh == MIN_PROBE_INTERVAL)
        );
    }
}
