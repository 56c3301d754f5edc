//! Context shared by all evaluations of rules for one object, or by all validations of one schema.

use portico_cel::Meter;

/// Meters, and the check for interruption.
pub(in crate::structural) struct EvaluationContext<'c> {
    /// Counts the steps of all evaluations. Their costs are subtracted from the budget of [`super::evaluation::Evaluation`].
    pub meter: Meter,
    /// Counts the work of compiling the rules of a schema.
    pub compilation: Meter,
    /// Returns true if the caller has disconnected.
    pub interrupted: &'c dyn Fn() -> bool,
}

impl<'c> EvaluationContext<'c> {
    pub fn new(interrupted: &'c dyn Fn() -> bool) -> Self {
        Self { meter: Meter::new(u64::MAX), compilation: Meter::of_compilation(), interrupted }
    }
}
