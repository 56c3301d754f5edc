//! How verbs end, and how long their calls may take.

use std::time::Duration;

/// How long a call may take.
pub(super) const DEADLINE: Duration = Duration::from_secs(30);

/// How a verb ends that could be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// All is as it should be.
    Well,
    /// Something is not.
    NotSo,
}
