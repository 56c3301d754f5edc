//! The context that all evaluations of rules over one object share, or all that validate one schema.

use portico_cel::Meter;

/// The meters and the interruption.
pub(in crate::structural) struct Context<'c> {
    /// Counts the steps of all of them. Their costs are taken off the budget of [`super::evaluation::Evaluation`].
    pub meter: Meter,
    /// Counts compiling the rules of a schema.
    pub compilation: Meter,
    /// Returns true once the caller has left.
    pub interrupted: &'c dyn Fn() -> bool,
}

impl<'c> Context<'c> {
    pub fn new(interrupted: &'c dyn Fn() -> bool) -> Self {
        Self { meter: Meter::new(u64::MAX), compilation: Meter::of_compilation(), interrupted }
    }
}
