//! Results of client commands, and the deadline of their calls.

use std::time::Duration;

/// Deadline of a call.
pub(super) const DEADLINE: Duration = Duration::from_secs(30);

/// Result of a command that could be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Done, or: the API is reachable, the states are equal.
    Positive,
    /// The API is unreachable, the states differ, the condition is not met.
    Negative,
}
