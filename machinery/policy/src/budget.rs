//! Budget of all expressions for one request. Upstream's rules limit the cost of each policy, but the number of policies is
//! unlimited.

use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use parking_lot::Mutex;
use portico_cel::Meter;

/// Default cost limit of all expressions for a request: once for mutation, and again for validation. The limit corresponds to
/// about five milliseconds of CPU time. Checks of the authorizer do not count.
pub const DEFAULT_COST_LIMIT: u64 = 100_000;

/// Cost of the expressions for one request that a serving thread evaluates.
///
/// About a millisecond.
///
/// Limit (Expressions, cost units): evaluation restarts on the threads for long work.
const INLINE_LIMIT: u64 = 20_000;
/// Cost that an evaluation may use on the serving thread even if the limit is used up: copying its objects would take longer.
const MIN_INLINE_COST: u64 = 1_000;
/// CPU time of these evaluations on a serving thread.
///
/// This limit applies to work whose cost does not reflect its time.
///
/// Limit (Expressions): evaluation restarts on the threads for long work.
const INLINE_TIME: Duration = Duration::from_millis(2);
/// CPU time that an evaluation may use on the serving thread even if the limit is used up.
const MIN_INLINE_TIME: Duration = Duration::from_micros(100);

/// Remaining budget of the expressions for one request.
#[derive(Debug)]
pub struct ExpressionBudget {
    limit: u64,
    meter: Mutex<Meter>,
    inline: Mutex<InlineLimits>,
    /// Returns true once the caller has disconnected.
    is_abandoned: fn() -> bool,
}

/// Remaining limits of evaluations on the serving thread, including repeated ones.
#[derive(Debug)]
struct InlineLimits {
    cost: u64,
    time: Duration,
    running: Option<InlineEvaluation>,
}

/// Evaluation on the serving thread.
#[derive(Debug)]
struct InlineEvaluation {
    max_time: Duration,
    /// Time of the first read of the CPU clock, which takes a system call.
    check_after: Instant,
    /// CPU time of the thread at the first read.
    first_cpu_time: Option<Duration>,
    /// True if the evaluation was interrupted and therefore has no outcome.
    is_interrupted: bool,
}

impl InlineEvaluation {
    fn start(max_time: Duration) -> Self {
        Self { max_time, check_after: Instant::now() + max_time, first_cpu_time: None, is_interrupted: false }
    }

    /// Interrupts the evaluation and returns true if it has used its CPU time. A thread that waits for a CPU uses none.
    fn interrupt(&mut self) -> bool {
        if Instant::now() < self.check_after {
            return false;
        }
        let now = ThreadTime::now().as_duration();
        self.is_interrupted = now - *self.first_cpu_time.get_or_insert(now) >= self.max_time;
        self.is_interrupted
    }
}

impl ExpressionBudget {
    /// Creates an unused budget.
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
        let inline = InlineLimits { cost: INLINE_LIMIT, time: INLINE_TIME, running: None };
        Self { limit, meter: Mutex::new(meter), inline: Mutex::new(inline), is_abandoned }
    }

    /// Evaluates expressions on the serving thread. Returns `None`, and charges nothing to the request, if they exceed the cost
    /// or time that is allowed on this thread.
    pub fn try_inline<T>(&self, evaluate: impl FnOnce() -> T) -> Option<T> {
        let (before, start) = (self.meter(), Instant::now());
        let remaining = before.remaining();
        let allowed = {
            let mut inline = self.inline.lock();
            inline.running = Some(InlineEvaluation::start(inline.time.max(MIN_INLINE_TIME)));
            remaining.min(inline.cost.max(MIN_INLINE_COST))
        };
        self.meter.lock().set_remaining(allowed);
        let outcome = evaluate();
        let spent = allowed.saturating_sub(self.remaining());
        let mut inline = self.inline.lock();
        let interrupted = inline.running.take().is_some_and(|running| running.is_interrupted);
        inline.cost = inline.cost.saturating_sub(spent);
        inline.time = inline.time.saturating_sub(start.elapsed());
        if interrupted || (allowed < remaining && spent == allowed) {
            self.set_meter(before);
            return None;
        }
        self.meter.lock().set_remaining(remaining - spent);
        Some(outcome)
    }

    /// True if the running evaluation must end: it takes too long for this thread, or its caller has left.
    pub(crate) fn is_interrupted(&self) -> bool {
        (self.is_abandoned)() || self.inline.lock().running.as_mut().is_some_and(InlineEvaluation::interrupt)
    }

    /// Returns the remaining cost.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.meter.lock().remaining()
    }

    /// True if nothing was charged yet.
    pub(crate) fn is_unused(&self) -> bool {
        self.remaining() == self.limit
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
    fn an_evaluation_that_exceeds_its_time_is_interrupted_on_the_serving_thread() {
        let budget = ExpressionBudget::new(DEFAULT_COST_LIMIT);
        let until_interrupted = || {
            while !budget.is_interrupted() {
                std::hint::spin_loop();
            }
        };
        assert_eq!(budget.try_inline(until_interrupted), None);
        assert_eq!(budget.remaining(), DEFAULT_COST_LIMIT, "an interrupted evaluation is not charged");
        assert_eq!(budget.try_inline(|| 7), Some(7), "cheap evaluations run inline");
        assert_eq!(budget.try_inline(until_interrupted), None);
    }

    #[test]
    fn an_outcome_that_is_complete_at_the_timeout_is_used() {
        let budget = ExpressionBudget::new(DEFAULT_COST_LIMIT);
        let spin = || {
            let start = ThreadTime::now();
            while start.elapsed() < 2 * INLINE_TIME {
                std::hint::spin_loop();
            }
        };
        let outcome = budget.try_inline(|| {
            spin();
            assert!(!budget.is_interrupted(), "the time starts with the first check");
            spin();
            7
        });
        assert_eq!(outcome, Some(7));
    }

    #[test]
    fn an_evaluation_on_another_thread_ends_once_it_is_abandoned() {
        let budget = ExpressionBudget::new(DEFAULT_COST_LIMIT);
        assert!(!budget.to_other_thread(|| false).is_interrupted());
        assert!(budget.to_other_thread(|| true).is_interrupted());
    }
}
