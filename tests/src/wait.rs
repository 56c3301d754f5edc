//! Waiting for what must happen: asked again and again until it is so, with a deadline that fails the test.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// A time that no passing test needs, however busy the machine is: what takes longer never comes.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// How often is asked.
const PERIOD: Duration = Duration::from_millis(20);

/// Asks until the answer is Ok; after [`PATIENCE`] panics with what was awaited and the last Err.
pub async fn eventually<T, E: Debug>(what: &str, ask: impl AsyncFnMut() -> Result<T, E>) -> T {
    within(PATIENCE, what, ask).await
}

/// As [`eventually`], for what must not only happen but happen in time.
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

/// As [`eventually`], for a condition.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    eventually(what, async || if holds().await { Ok(()) } else { Err("it does not hold") }).await;
}
