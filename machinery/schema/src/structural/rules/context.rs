//! What all evaluations over one object, or over the defaults of one schema, share.

use portico_cel::Meter;

/// The meter and the interruption of evaluations.
pub(in crate::structural) struct Context<'c> {
    /// Counts the steps of all of them. Their costs are taken off the budget of [`super::evaluation::Evaluation`].
    pub meter: Meter,
    /// Returns true once the caller has left.
    pub interrupted: &'c dyn Fn() -> bool,
}

impl<'c> Context<'c> {
    pub fn new(interrupted: &'c dyn Fn() -> bool) -> Self {
        Self { meter: Meter::new(u64::MAX), interrupted }
    }
}
