//! What all expressions about one request may cost together, on top of what each policy may cost by upstream's rules: those bound
//! each policy, and nothing bounds how many there are.

use std::sync::atomic::{AtomicU64, Ordering};

/// What all expressions about a request may cost while it is changed, and once more while it is validated, unless settings say
/// otherwise: about five milliseconds of a processor. Questions to the authorizer do not count.
pub const DEFAULT_COST_LIMIT: u64 = 100_000;

/// What is left of it for one request.
#[derive(Debug)]
pub struct ExpressionBudget {
    limit: u64,
    left: AtomicU64,
}

impl ExpressionBudget {
    /// So much, all of it left.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { limit, left: AtomicU64::new(limit) }
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
