//! What probes found, and what facades report: the memory of the remote controller.
//!
//! Time comes in as a value. It must not know how a probe is made.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use portico_kit::backoff::{KeyLimiter, Policy};
use portico_machinery::route::Target;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::decide::{ConditionStatus, ProbePlan, decide_probed};
use super::probe::{ProbeFailure, ProbeStage};

/// A good answer is asked for again after this long.
pub const PERIOD: Duration = Duration::from_secs(30);
/// A facade's experience counts for this long, unless it repeats it.
pub const HINT_AGE: Duration = Duration::from_secs(60);
/// Failing backends: probed again after 250 ms, then twice as long each time, up to the period.
const RETRY: Policy = Policy::new(Duration::from_millis(250), PERIOD, 2.0, 0.0);
/// A facade that fails makes us look again, but no more often than this.
const HINT_PAUSE: Duration = Duration::from_secs(1);

/// What a probe found, for this very plan.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was probed.
    pub plan: Arc<ProbePlan>,
    /// How it ended.
    pub result: Result<(), ProbeFailure>,
    /// When it ended.
    pub at: Instant,
    /// The same as wall time, RFC 3339.
    pub since: String,
    valid_until: Instant,
}

impl Outcome {
    /// Lets it expire now, but no earlier than [`HINT_PAUSE`] after the probe. Returns the time until then.
    fn expire_soon(&mut self, now: Instant) -> Duration {
        let due = now.max(self.at + HINT_PAUSE);
        self.valid_until = self.valid_until.min(due);
        due - now
    }
}

/// One facade's experience.
#[derive(Clone, Debug)]
pub struct Hint {
    /// Where it stops; nothing when it reaches the backend.
    pub failed_at: Option<ProbeStage>,
    /// For people.
    pub detail: String,
    /// RFC 3339 wall time.
    pub since: String,
    at: Instant,
}

impl Hint {
    /// A failure, until something else is seen: whoever cannot reach a backend need not report it twice.
    fn counts(&self, now: Instant) -> bool {
        self.failed_at.is_some() || now < self.at + HINT_AGE
    }
}

struct Running {
    plan: Arc<ProbePlan>,
    /// Dropped to make the probe end.
    cancel: oneshot::Sender<()>,
}

/// What to do for a plan.
pub enum Next {
    /// Its outcome is known and fresh for this much longer.
    Known(Outcome, Duration),
    /// It is being probed; whoever does that will ask again.
    Running,
    /// Probe it now. The receiver ends when the probe is no longer wanted. `slow`: the last probe ran into a time
    /// limit.
    Start {
        /// What to probe.
        plan: Arc<ProbePlan>,
        /// Resolves when the probe is no longer wanted.
        cancelled: oneshot::Receiver<()>,
        /// Whether it belongs into the slow lane.
        slow: bool,
    },
}

/// The memory, by name of APIService.
pub struct Cache {
    outcomes: HashMap<Arc<str>, Outcome>,
    running: HashMap<Arc<str>, Running>,
    /// What facades report, by facade: few, and mostly one.
    hints: HashMap<Arc<str>, Vec<(Box<str>, Hint)>>,
    limiter: KeyLimiter<Arc<str>>,
    /// Probed because a connection was lost: when they fail, all that use the same address are probed.
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
    /// Looks a plan up. A probe of an older plan is called off. What facades reached with other trust, or before the APIService was
    /// moved to other addresses, does not count, nor does which addresses they could not reach when there are others.
    pub fn next(&mut self, plan: ProbePlan, now: Instant) -> Next {
        let name = plan.name.clone();
        // The plan before this one: once it is looked up, what facades report is about it.
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

    /// A backend closed a connection. Answers which APIService is to be looked at again, and when: one of those that
    /// use this address, and each no more often than every [`HINT_PAUSE`].
    pub fn lost(&mut self, target: &Target, now: Instant) -> Option<(Arc<str>, Duration)> {
        let uses = |(_, o): &(_, &mut Outcome)| o.result.is_ok() && o.plan.targets.contains(target);
        let (name, outcome) = self.outcomes.iter_mut().find(uses)?;
        self.canaries.insert(name.clone());
        Some((name.clone(), outcome.expire_soon(now)))
    }

    /// Another control service has stopped reaching the backend. Returns when to probe it again if the last probe reached it.
    pub fn doubt(&mut self, name: &str, now: Instant) -> Option<Duration> {
        let outcome = self.outcomes.get_mut(name).filter(|outcome| outcome.result.is_ok())?;
        Some(outcome.expire_soon(now))
    }

    /// All that use an address of this failed plan and were well are to be looked at again. What facades have seen was
    /// before it failed.
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

    /// A probe ended. Ignored when it was called off meanwhile. Answers who else is to be looked at again.
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
        // An outcome that repeats the last one keeps the time since when it is so.
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

    /// The APIService is gone, or has no backend any more.
    pub fn forget(&mut self, name: &str) {
        if let Some((name, _)) = self.outcomes.remove_entry(name) {
            self.limiter.forget(&name);
        }
        self.running.remove(name);
        self.hints.remove(name);
        self.canaries.remove(name);
    }

    /// A facade's experience. Answers whether the APIService must be looked at again.
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
                // What is repeated has been so since it was first reported.
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

    /// A facade is no longer connected: its experience counts no more. Answers whom that concerns.
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

    /// Whether a connected facade reaches the backend.
    #[must_use]
    pub fn reached_by_facade(&self, name: &str, now: Instant) -> bool {
        let reached = |(_, hint): &(_, Hint)| hint.failed_at.is_none() && hint.counts(now);
        self.hints.get(name).is_some_and(|hints| hints.iter().any(reached))
    }

    /// The probed APIServices, and whether the control service or a connected facade reaches their backends.
    pub fn reached(&self, now: Instant) -> impl Iterator<Item = (&str, bool)> {
        self.outcomes.iter().map(move |(name, outcome)| {
            let by_facade = self.reached_by_facade(name, now);
            (
                &**name,
                decide_probed(&outcome.plan, &outcome.result, by_facade).status == ConditionStatus::True,
            )
        })
    }

    /// The last probe of an APIService.
    #[must_use]
    pub fn outcome(&self, name: &str) -> Option<&Outcome> {
        self.outcomes.get(name)
    }

    /// What facades report about an APIService and still counts, sorted by facade.
    #[must_use]
    pub fn hints(&self, name: &str, now: Instant) -> Vec<(&str, &Hint)> {
        let counting = self.hints.get(name).into_iter().flatten().filter(|(_, hint)| hint.counts(now));
        let mut hints: Vec<_> = counting.map(|(facade, hint)| (&**facade, hint)).collect();
        hints.sort_unstable_by_key(|(facade, _)| *facade);
        hints
    }

    /// All outcomes are to be asked for again: the client certificate changed.
    pub fn expire_all(&mut self, now: Instant) {
        self.outcomes.values_mut().for_each(|outcome| outcome.valid_until = now);
        self.running.clear();
    }
}

/// Between 80 and 100 % of the period, so that backends that were registered together are not asked together for ever.
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
        // The addresses behind the same Service changed: what facades reach is likely to be reached still.
        probed(&mut cache, named("a", 2), false, now);
        assert!(cache.reached_by_facade(&old.name, now));
        let moved = ProbePlan { fingerprint: old.fingerprint + 1, ..named("a", 3) };
        probed(&mut cache, moved.clone(), false, now);
        assert!(!cache.reached_by_facade(&old.name, now));
        // A facade reaches the next backend before the probe of it has ended.
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
