//! Waiting for a condition that must become true, with a deadline that fails the test.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Time that no passing test needs, even on a busy machine: a longer wait fails.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Poll interval.
const PERIOD: Duration = Duration::from_millis(20);

/// Polls until `ask` returns `Ok`; panics after [`WAIT_LIMIT`] with the description and the last `Err`.
pub async fn eventually<T, E: Debug>(what: &str, ask: impl AsyncFnMut() -> Result<T, E>) -> T {
    within(PATIENCE, what, ask).await
}

/// Polls as [`eventually`] does, with a time limit that is part of the test.
pub async fn within<T, E: Debug>(
    limit: Duration,
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let deadline = Instant::now() + limit;
    let mut ticks = tokio::time::interval(PERIOD);
    loop {
        ticks.tick().await;
        match ask().await {
            Ok(value) => return value,
            Err(last) if Instant::now() > deadline => {
                panic!("not within {limit:?}: {what}; last: {last:?}")
            }
            Err(_) => {}
        }
    }
}

/// Polls as [`eventually`] does, for a condition.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    eventually(what, async || if holds().await { Ok(()) } else { Err("it does not hold") }).await;
}
