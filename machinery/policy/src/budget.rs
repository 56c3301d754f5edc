//! What all expressions about one request may cost together, on top of what each policy may cost by upstream's rules: those bound
//! each policy, and nothing bounds how many there are.

use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use parking_lot::Mutex;
use portico_cel::Meter;

/// What all expressions about a request may cost while it is changed, and once more while it is validated, unless settings say
/// otherwise: about five milliseconds of a processor. Questions to the authorizer do not count.
pub const DEFAULT_COST_LIMIT: u64 = 100_000;

/// Cost of the expressions for one request that a serving thread evaluates.
///
/// About a millisecond.
///
/// Limit (Expressions, cost units): evaluation restarts on the threads for long work.
const INLINE_LIMIT: u64 = 20_000;
/// Cost of an evaluation that stays on that thread also beyond this part: copying its objects takes longer.
const CHEAP: u64 = 1_000;
/// CPU time of these evaluations on a serving thread.
///
/// For work whose cost does not reflect its time.
///
/// Limit (Expressions): evaluation restarts on the threads for long work.
const INLINE_TIME: Duration = Duration::from_millis(2);
/// Processor time of an evaluation that stays on that thread also beyond this time.
const CHEAP_TIME: Duration = Duration::from_micros(100);

/// What is left of it for one request.
#[derive(Debug)]
pub struct ExpressionBudget {
    limit: u64,
    meter: Mutex<Meter>,
    inline: Mutex<Inline>,
    /// Returns true once the caller has left.
    is_abandoned: fn() -> bool,
}

/// What evaluations on the thread that serves the request may still spend, repeated ones included.
#[derive(Debug)]
struct Inline {
    cost: u64,
    time: Duration,
    running: Option<Running>,
}

/// An evaluation on that thread.
#[derive(Debug)]
struct Running {
    allowed: Duration,
    /// Time of the first look at the clock of the processor, which takes a system call.
    check_after: Instant,
    /// The thread's processor time at the first look.
    first_seen: Option<Duration>,
    /// True if the evaluation was interrupted: then it has no outcome.
    interrupted: bool,
}

impl Running {
    fn start(allowed: Duration) -> Self {
        Self { allowed, check_after: Instant::now() + allowed, first_seen: None, interrupted: false }
    }

    /// Interrupts the evaluation once it has used its processor time. Returns true then. A thread that only waits for a processor
    /// uses none.
    fn interrupt(&mut self) -> bool {
        if Instant::now() < self.check_after {
            return false;
        }
        let now = ThreadTime::now().as_duration();
        self.interrupted = now - *self.first_seen.get_or_insert(now) >= self.allowed;
        self.interrupted
    }
}

impl ExpressionBudget {
    /// So much, all of it left.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self::with_meter(limit, Meter::new(limit), || false)
    }

    /// Copies the budget for another thread, where evaluations end once `is_abandoned` returns true.
    #[must_use]
    pub fn to_other_thread(&self, is_abandoned: fn() -> bool) -> Self {
        Self::with_meter(self.limit, self.meter(), is_abandoned)
    }

    fn with_meter(limit: u64, meter: Meter, is_abandoned: fn() -> bool) -> Self {
        let inline = Inline { cost: INLINE_LIMIT, time: INLINE_TIME, running: None };
        Self { limit, meter: Mutex::new(meter), inline: Mutex::new(inline), is_abandoned }
    }

    /// Evaluates expressions on the thread that serves the request. Returns `None`, and charges nothing to the request, if they
    /// cost more than may be spent there, or take longer.
    pub fn try_inline<T>(&self, evaluate: impl FnOnce() -> T) -> Option<T> {
        let (before, begun) = (self.meter(), Instant::now());
        let left = before.left();
        let allowed = {
            let mut inline = self.inline.lock();
            inline.running = Some(Running::start(inline.time.max(CHEAP_TIME)));
            left.min(inline.cost.max(CHEAP))
        };
        self.meter.lock().set_left(allowed);
        let outcome = evaluate();
        let spent = allowed.saturating_sub(self.left());
        let mut inline = self.inline.lock();
        let interrupted = inline.running.take().is_some_and(|running| running.interrupted);
        inline.cost = inline.cost.saturating_sub(spent);
        inline.time = inline.time.saturating_sub(begun.elapsed());
        if interrupted || (allowed < left && spent == allowed) {
            self.set_meter(before);
            return None;
        }
        self.meter.lock().set_left(left - spent);
        Some(outcome)
    }

    /// True if the running evaluation must end: it takes too long for this thread, or its caller has left.
    pub(crate) fn is_interrupted(&self) -> bool {
        (self.is_abandoned)() || self.inline.lock().running.as_mut().is_some_and(Running::interrupt)
    }

    /// What is left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.meter.lock().left()
    }

    /// Whether nothing was used yet.
    pub(crate) fn is_untouched(&self) -> bool {
        self.left() == self.limit
    }

    /// Copies the meter of the expressions.
    #[must_use]
    pub fn meter(&self) -> Meter {
        self.meter.lock().clone()
    }

    /// Replaces the meter. Expressions about one request are evaluated one after another.
    pub fn set_meter(&self, meter: Meter) {
        *self.meter.lock() = meter;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evaluation_that_takes_longer_than_its_cost_suggests_leaves_the_serving_thread() {
        let budget = ExpressionBudget::new(DEFAULT_COST_LIMIT);
        let until_interrupted = || {
            while !budget.is_interrupted() {
                std::hint::spin_loop();
            }
        };
        assert_eq!(budget.try_inline(until_interrupted), None);
        assert_eq!(
            budget.left(),
            DEFAULT_COST_LIMIT,
            "the request pays for the evaluation that has an outcome"
        );
        assert_eq!(budget.try_inline(|| 7), Some(7), "one that is cheap stays");
        assert_eq!(budget.try_inline(until_interrupted), None);
    }

    #[test]
    fn an_outcome_counts_that_is_complete_when_the_time_runs_out() {
        let budget = ExpressionBudget::new(DEFAULT_COST_LIMIT);
        let spin = || {
            let begun = ThreadTime::now();
            while begun.elapsed() < 2 * INLINE_TIME {
                std::hint::spin_loop();
            }
        };
        let outcome = budget.try_inline(|| {
            spin();
            assert!(!budget.is_interrupted(), "the time counts from the first look");
            spin();
            7
        });
        assert_eq!(outcome, Some(7));
    }

    #[test]
    fn an_evaluation_on_another_thread_ends_once_nobody_waits() {
        let budget = ExpressionBudget::new(DEFAULT_COST_LIMIT);
        assert!(!budget.to_other_thread(|| false).is_interrupted());
        assert!(budget.to_other_thread(|| true).is_interrupted());
    }
}
