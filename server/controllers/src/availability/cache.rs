//! Results of probes, and reports of facades: the state of the remote controller.
//!
//! Times are passed in as values. The module does not depend on how probes are made.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use portico_kit::backoff::{KeyLimiter, Policy};
use portico_machinery::route::Target;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::decide::{ConditionStatus, ProbePlan, decide_probed};
use super::probe::{ProbeFailure, ProbeStage};

/// Interval between two probes of a reachable backend.
pub const PERIOD: Duration = Duration::from_secs(30);
/// Time for which a facade's report of success is valid, unless the facade repeats it.
pub const HINT_AGE: Duration = Duration::from_secs(60);
/// Backoff for failing backends: 250 ms before the next probe, doubled each time, up to the probe interval.
const RETRY: Policy = Policy::new(Duration::from_millis(250), PERIOD, 2.0, 0.0);
/// Minimum time between two probes of a backend that facades report as failing.
const HINT_PAUSE: Duration = Duration::from_secs(1);

/// Result of a probe of one plan.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub plan: Arc<ProbePlan>,
    pub result: Result<(), ProbeFailure>,
    pub at: Instant,
    /// Wall time since which the result is the same, RFC 3339.
    pub since: String,
    valid_until: Instant,
}

impl Outcome {
    /// Expires the outcome now, but no earlier than [`MIN_PROBE_INTERVAL`] after the probe. Returns the time until then.
    fn expire_soon(&mut self, now: Instant) -> Duration {
        let due = now.max(self.at + HINT_PAUSE);
        self.valid_until = self.valid_until.min(due);
        due - now
    }
}

/// Report of a facade about a backend.
#[derive(Clone, Debug)]
pub struct Hint {
    /// Stage at which requests fail; `None` if the facade reaches the backend.
    pub failed_at: Option<ProbeStage>,
    /// Human-readable details.
    pub detail: String,
    /// Wall time since which the state is the same, RFC 3339.
    pub since: String,
    at: Instant,
}

impl Hint {
    /// Returns true if the report is valid. A failure is valid until the facade reports success: facades do not repeat failures.
    fn counts(&self, now: Instant) -> bool {
        self.failed_at.is_some() || now < self.at + HINT_AGE
    }
}

struct Running {
    plan: Arc<ProbePlan>,
    /// Dropped to cancel the probe.
    cancel: oneshot::Sender<()>,
}

/// Result of looking up a plan in the cache.
pub enum Next {
    /// The outcome is known and stays fresh for this duration.
    Known(Outcome, Duration),
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
pub struct Cache {
    outcomes: HashMap<Arc<str>, Outcome>,
    running: HashMap<Arc<str>, Running>,
    /// Reports by facade. A vector, because there are few facades, usually one.
    hints: HashMap<Arc<str>, Vec<(Box<str>, Hint)>>,
    limiter: KeyLimiter<Arc<str>>,
    /// APIServices probed because a connection was lost: if the probe fails, all that share an address are probed.
    canaries: HashSet<Arc<str>>,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            outcomes: HashMap::new(),
            running: HashMap::new(),
            hints: HashMap::new(),
            limiter: KeyLimiter::new(RETRY),
            canaries: HashSet::new(),
        }
    }
}

impl Cache {
    /// Looks up a plan, and cancels a probe of an older plan. Drops reports of facades that used other trust settings or date
    /// from before the APIService moved to other addresses. If the addresses have changed, failures are dropped, too.
    pub fn next(&mut self, plan: ProbePlan, now: Instant) -> Next {
        let name = plan.name.clone();
        // The previous plan: reports of facades that arrive after this lookup refer to the new plan.
        let running = self.running.get(&name).map(|running| &running.plan);
        let last = running.or_else(|| self.outcomes.get(&name).map(|outcome| &outcome.plan));
        if let (Some(last), Some(hints)) = (last, self.hints.get_mut(&name)) {
            let (trusts_like, same_targets) = (last.trusts_like(&plan), last.targets == plan.targets);
            let still_counts = trusts_like && !plan.is_moved_from(last);
            hints.retain(|(_, hint)| still_counts && (same_targets || hint.failed_at.is_none()));
        }
        if let Some(outcome) = self.outcomes.get(&name)
            && *outcome.plan == plan
            && now < outcome.valid_until
        {
            return Next::Known(outcome.clone(), outcome.valid_until - now);
        }
        if self.running.get(&name).is_some_and(|r| *r.plan == plan && !r.cancel.is_closed()) {
            return Next::Running;
        }
        let last = self.outcomes.get(&name);
        let slow = last
            .is_some_and(|o| o.result.as_ref().is_err_and(|f| f.timed_out) && o.plan.targets == plan.targets);
        let (cancel, cancelled) = oneshot::channel();
        let plan = Arc::new(plan);
        self.running.insert(name, Running { plan: plan.clone(), cancel });
        Next::Start { plan, cancelled, slow }
    }

    /// Handles a connection that a backend closed. Returns one APIService that uses the address, and the delay after which it
    /// must be probed; each APIService is probed at most every [`MIN_PROBE_INTERVAL`].
    pub fn lost(&mut self, target: &Target, now: Instant) -> Option<(Arc<str>, Duration)> {
        let uses = |(_, o): &(_, &mut Outcome)| o.result.is_ok() && o.plan.targets.contains(target);
        let (name, outcome) = self.outcomes.iter_mut().find(uses)?;
        self.canaries.insert(name.clone());
        Some((name.clone(), outcome.expire_soon(now)))
    }

    /// Handles the report that another control service no longer reaches the backend. Returns the delay before the next probe if
    /// the last probe reached the backend.
    pub fn doubt(&mut self, name: &str, now: Instant) -> Option<Duration> {
        let outcome = self.outcomes.get_mut(name).filter(|outcome| outcome.result.is_ok())?;
        Some(outcome.expire_soon(now))
    }

    /// Expires all reached APIServices that share an address with this failed plan, and returns their names. Reports of facades
    /// are dropped because they date from before the failure.
    fn doubt_neighbours(&mut self, plan: &ProbePlan, now: Instant) -> Vec<Arc<str>> {
        let shares = |o: &Outcome| o.plan.targets.iter().any(|target| plan.targets.contains(target));
        let well = self.outcomes.iter_mut().filter(|(_, o)| o.result.is_ok() && shares(o));
        let doubt = |(name, outcome): (&Arc<str>, &mut Outcome)| {
            outcome.valid_until = now;
            name.clone()
        };
        let doubted: Vec<_> = well.map(doubt).collect();
        doubted.iter().chain([&plan.name]).for_each(|name| drop(self.hints.remove(name)));
        doubted
    }

    /// Stores the result of a probe; ignored if the probe was canceled. Returns other APIServices that must be probed again.
    pub fn finished(
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
                spread(plan)
            }
            Err(_) => self.limiter.when(name),
        };
        // A result equal to the last one keeps the time since which it applies.
        let since = match self.outcomes.get(name) {
            Some(last) if last.result == result => last.since.clone(),
            _ => since,
        };
        let failed = result.is_err();
        let outcome = Outcome { plan: plan.clone(), result, at: now, since, valid_until: now + valid };
        self.outcomes.insert(name.clone(), outcome);
        let was_canary = self.canaries.remove(name);
        if was_canary && failed { self.doubt_neighbours(plan, now) } else { Vec::new() }
    }

    /// Removes an APIService that is deleted or no longer has a backend.
    pub fn forget(&mut self, name: &str) {
        if let Some((name, _)) = self.outcomes.remove_entry(name) {
            self.limiter.forget(&name);
        }
        self.running.remove(name);
        self.hints.remove(name);
        self.canaries.remove(name);
    }

    /// Stores a report of a facade. Returns true if the APIService must be reconciled.
    pub fn hint(
        &mut self,
        facade: &str,
        name: &Arc<str>,
        failed_at: Option<ProbeStage>,
        detail: &str,
        now: Instant,
        since: String,
    ) -> bool {
        let hints = match self.hints.get_mut(name) {
            Some(hints) => hints,
            None => self.hints.entry(name.clone()).or_default(),
        };
        let mut hint = Hint { failed_at, detail: detail.to_owned(), since, at: now };
        let is_news = match hints.iter_mut().find(|(who, _)| **who == *facade) {
            Some((_, known)) => {
                let is_news = known.failed_at.is_some() != failed_at.is_some();
                // A repeated state keeps the time of the first report.
                if known.failed_at == failed_at && known.counts(now) {
                    hint.since = std::mem::take(&mut known.since);
                }
                *known = hint;
                is_news
            }
            None => {
                hints.reserve_exact(1);
                hints.push((facade.into(), hint));
                true
            }
        };
        let Some(outcome) = self.outcomes.get_mut(name) else { return true };
        if failed_at.is_some() && outcome.result.is_ok() && now >= outcome.at + HINT_PAUSE {
            outcome.valid_until = now;
            return true;
        }
        is_news
    }

    /// Removes the reports of a facade that is no longer connected. Returns the APIServices that they were about.
    pub fn forget_facade(&mut self, facade: &str) -> Vec<Arc<str>> {
        let mut concerned = Vec::new();
        self.hints.retain(|name, hints| {
            if let Some(at) = hints.iter().position(|(who, _)| **who == *facade) {
                hints.swap_remove(at);
                concerned.push(name.clone());
            }
            !hints.is_empty()
        });
        concerned
    }

    /// Returns true if a connected facade reaches the backend.
    #[must_use]
    pub fn reached_by_facade(&self, name: &str, now: Instant) -> bool {
        let reached = |(_, hint): &(_, Hint)| hint.failed_at.is_none() && hint.counts(now);
        self.hints.get(name).is_some_and(|hints| hints.iter().any(reached))
    }

    /// Returns the probed APIServices; true if the control service or a connected facade reaches the backend.
    pub fn reached(&self, now: Instant) -> impl Iterator<Item = (&str, bool)> {
        self.outcomes.iter().map(move |(name, outcome)| {
            let by_facade = self.reached_by_facade(name, now);
            (
                &**name,
                decide_probed(&outcome.plan, &outcome.result, by_facade).status == ConditionStatus::True,
            )
        })
    }

    /// Returns the last outcome of an APIService.
    #[must_use]
    pub fn outcome(&self, name: &str) -> Option<&Outcome> {
        self.outcomes.get(name)
    }

    /// Returns the valid reports of facades about an APIService, sorted by facade.
    #[must_use]
    pub fn hints(&self, name: &str, now: Instant) -> Vec<(&str, &Hint)> {
        let counting = self.hints.get(name).into_iter().flatten().filter(|(_, hint)| hint.counts(now));
        let mut hints: Vec<_> = counting.map(|(facade, hint)| (&**facade, hint)).collect();
        hints.sort_unstable_by_key(|(facade, _)| *facade);
        hints
    }

    /// Expires all outcomes after a change of the client certificate.
    pub fn expire_all(&mut self, now: Instant) {
        self.outcomes.values_mut().for_each(|outcome| outcome.valid_until = now);
        self.running.clear();
    }
}

/// Returns 80 to 100 % of the probe interval, so that backends that were registered together are not always probed together.
fn spread(plan: &ProbePlan) -> Duration {
    let share = u32::try_from(plan.fingerprint % 1000).unwrap_or(0);
    PERIOD - PERIOD / 5 / 1000 * share
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::availability::tests::plan;

    fn named(name: &str, port: u16) -> ProbePlan {
        let targets = vec![Target { host: "10.0.0.1".into(), port }];
        ProbePlan { name: name.into(), targets, ..plan() }
    }

    fn probed(cache: &mut Cache, plan: ProbePlan, ok: bool, now: Instant) -> Vec<Arc<str>> {
        let failure = || ProbeFailure { stage: ProbeStage::Dial, timed_out: false, message: "no".into() };
        let Next::Start { plan, cancelled, .. } = cache.next(plan, now) else { panic!("it is not due") };
        let neighbours = cache.finished(&plan, if ok { Ok(()) } else { Err(failure()) }, now, String::new());
        drop(cancelled);
        neighbours
    }

    #[test]
    fn a_lost_connection_sends_one_canary_and_its_failure_brings_doubt_on_its_neighbours() {
        let (mut cache, start) = (Cache::default(), Instant::now());
        for (name, port) in [("a", 1), ("b", 1), ("c", 2)] {
            probed(&mut cache, named(name, port), true, start);
        }
        let target = Target { host: "10.0.0.1".into(), port: 1 };
        let later = start + HINT_PAUSE * 2;
        let (canary, delay) = cache.lost(&target, later).unwrap();
        assert_eq!(delay, Duration::ZERO);
        cache.hint("f", &canary, None, "", start, String::new());
        let other: Arc<str> = if &*canary == "a" { "b" } else { "a" }.into();
        assert!(matches!(cache.next(named(&other, 1), later), Next::Known(..)), "one is enough");
        let doubted = probed(&mut cache, named(&canary, 1), false, later);
        assert_eq!(doubted, std::slice::from_ref(&other));
        assert!(!cache.reached_by_facade(&canary, later), "that was before");
        assert!(matches!(cache.next(named(&other, 1), later), Next::Start { .. }));
        assert!(matches!(cache.next(named("c", 2), later), Next::Known(..)));
    }

    #[test]
    fn what_a_facade_reached_does_not_count_once_the_apiservice_is_moved_to_another_backend() {
        let (mut cache, now) = (Cache::default(), Instant::now());
        let old = named("a", 1);
        probed(&mut cache, old.clone(), true, now);
        cache.hint("f", &old.name, None, "", now, String::new());
        // The addresses behind the same Service changed: facades probably still reach the backend.
        probed(&mut cache, named("a", 2), false, now);
        assert!(cache.reached_by_facade(&old.name, now));
        let moved = ProbePlan { fingerprint: old.fingerprint + 1, ..named("a", 3) };
        probed(&mut cache, moved.clone(), false, now);
        assert!(!cache.reached_by_facade(&old.name, now));
        // A facade reaches the new backend before its probe has ended.
        let next = ProbePlan { fingerprint: old.fingerprint + 2, ..named("a", 4) };
        let probe = cache.next(next.clone(), now);
        assert!(matches!(probe, Next::Start { .. }));
        cache.hint("f", &old.name, None, "", now, String::new());
        assert!(matches!(cache.next(next, now), Next::Running));
        assert!(cache.reached_by_facade(&old.name, now));
    }

    #[test]
    fn a_backend_that_closes_after_each_answer_is_asked_no_more_often_than_once_a_second() {
        let (mut cache, now) = (Cache::default(), Instant::now());
        probed(&mut cache, named("a", 1), true, now);
        let target = Target { host: "10.0.0.1".into(), port: 1 };
        assert_eq!(cache.lost(&target, now), Some(("a".into(), HINT_PAUSE)));
        assert!(matches!(cache.next(named("a", 1), now), Next::Known(_, fresh) if fresh == HINT_PAUSE));
    }
}
