//! Waiting for a condition that must become true, with a deadline that fails the test.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Time that no passing test needs, even on a busy machine: a longer wait fails.
pub const WAIT_LIMIT: Duration = Duration::from_secs(90);

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Polls until `probe` returns `Ok`; panics after [`WAIT_LIMIT`] with the description and the last `Err`.
pub async fn eventually<T, E: Debug>(description: &str, probe: impl AsyncFnMut() -> Result<T, E>) -> T {
    within(WAIT_LIMIT, description, probe).await
}

/// Polls as [`eventually`] does, with a time limit that is part of the test.
pub async fn within<T, E: Debug>(
    limit: Duration,
    description: &str,
    mut probe: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let deadline = Instant::now() + limit;
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    loop {
        ticks.tick().await;
        match probe().await {
            Ok(value) => return value,
            Err(last) if Instant::now() > deadline => {
                panic!("timed out after {limit:?}: {description}; last: {last:?}")
            }
            Err(_) => {}
        }
    }
}

/// Polls as [`eventually`] does, for a condition.
pub async fn wait_until(description: &str, mut condition: impl AsyncFnMut() -> bool) {
    eventually(description, async || if condition().await { Ok(()) } else { Err("the condition is false") })
        .await;
}
