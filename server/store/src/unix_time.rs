//! Times in Unix seconds: how old history is.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// So long before a time, both in Unix seconds.
pub(crate) fn before(now: i64, long: Duration) -> i64 {
    now.saturating_sub(i64::try_from(long.as_secs()).unwrap_or(i64::MAX))
}

/// Now.
pub(crate) fn now() -> i64 {
    i64::try_from(since().as_secs()).unwrap_or(i64::MAX)
}

/// Now, with parts of a second.
pub(crate) fn since() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
