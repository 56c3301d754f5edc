//! Results of client commands, and the deadline of their calls.

use std::time::Duration;

/// Deadline of a call to the control service.
pub(super) const DEADLINE: Duration = Duration::from_secs(30);

/// Result of a command that completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The change was made, the API is reachable, or the states are equal.
    Positive,
    /// The API is unreachable, the states differ, or the condition was not met in time.
    Negative,
}
