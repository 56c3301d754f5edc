//! Waiting for what must happen: asked again and again until it is so, with a deadline that fails the test.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// How often is asked.
const PERIOD: Duration = Duration::from_millis(20);

/// Asks until the answer is Ok; after `seconds` panics with what was awaited and the last Err.
pub async fn eventually<T, E: Debug, F: Future<Output = Result<T, E>>>(
    what: &str,
    seconds: u64,
    mut ask: impl FnMut() -> F,
) -> T {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let mut ticks = tokio::time::interval(PERIOD);
    loop {
        ticks.tick().await;
        match ask().await {
            Ok(value) => return value,
            Err(last) if Instant::now() > deadline => {
                panic!("not within {seconds} s: {what}; last: {last:?}")
            }
            Err(_) => {}
        }
    }
}

/// As [`eventually`], for a condition.
pub async fn until<F: Future<Output = bool>>(what: &str, seconds: u64, mut holds: impl FnMut() -> F) {
    eventually(what, seconds, || {
        let asked = holds();
        async move { if asked.await { Ok(()) } else { Err("it does not hold") } }
    })
    .await;
}
