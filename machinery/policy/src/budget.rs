//! What all expressions about one request may cost together, on top of what each policy may cost by upstream's rules: those bound
//! each policy, and nothing bounds how many there are.

use std::sync::atomic::{AtomicU64, Ordering};

/// What all expressions about a request may cost while it is changed, and once more while it is validated, unless settings say
/// otherwise: about five milliseconds of a processor. Questions to the authorizer do not count.
pub const DEFAULT_COST_LIMIT: u64 = 100_000;

/// Part of it that is spent on the thread that serves the request: about a millisecond.
const INLINE_LIMIT: u64 = 20_000;
/// Cost of an evaluation that stays on that thread also beyond this part: copying its objects takes longer.
const CHEAP: u64 = 1_000;

/// What is left of it for one request.
#[derive(Debug)]
pub struct ExpressionBudget {
    limit: u64,
    left: AtomicU64,
    /// Remaining cost for the thread that serves the request, repeated evaluations included.
    inline: AtomicU64,
}

impl ExpressionBudget {
    /// So much, all of it left.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self::with_left(limit, limit)
    }

    /// Copies the budget for another thread.
    #[must_use]
    pub fn to_other_thread(&self) -> Self {
        Self::with_left(self.limit, self.left())
    }

    fn with_left(limit: u64, left: u64) -> Self {
        Self { limit, left: AtomicU64::new(left), inline: AtomicU64::new(INLINE_LIMIT) }
    }

    /// Evaluates expressions on the thread that serves the request. Returns `None`, and charges nothing to the request, if they
    /// cost more than may be spent there.
    pub fn try_inline<T>(&self, evaluate: impl FnOnce() -> T) -> Option<T> {
        let (left, inline) = (self.left(), self.inline.load(Ordering::Relaxed));
        let allowed = left.min(inline.max(CHEAP));
        self.set_left(allowed);
        let outcome = evaluate();
        let spent = allowed.saturating_sub(self.left());
        self.inline.store(inline.saturating_sub(spent), Ordering::Relaxed);
        if allowed < left && spent == allowed {
            self.set_left(left);
            return None;
        }
        self.set_left(left - spent);
        Some(outcome)
    }

    /// What is left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Whether nothing was used yet.
    pub(crate) fn is_untouched(&self) -> bool {
        self.left() == self.limit
    }

    /// Notes what is left. Expressions about one request are evaluated one after another.
    pub fn set_left(&self, left: u64) {
        self.left.store(left, Ordering::Relaxed);
    }
}
