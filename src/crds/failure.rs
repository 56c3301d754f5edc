//! Why a command about definitions ends badly.

/// Why nothing could be checked; one line for people.
pub(super) type Failure = Box<dyn std::error::Error + Send + Sync>;
