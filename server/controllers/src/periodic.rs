//! Repeated work: at intervals, or until it succeeds once.

use std::time::Duration;

use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_machinery::Status;

/// Maximum time for creating the first objects: a server that cannot create them in this time fails to start (upstream's limit
/// for the bootstrap policy).
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs `round` forever, each time `period` after the last run, or earlier if that has failed. `round` returns true if it
/// succeeded, and logs its own errors.
pub(crate) async fn at_intervals<R>(period: Duration, policy: BackoffPolicy, mut round: impl FnMut() -> R)
where
    R: Future<Output = bool>,
{
    let mut backoff = Backoff::new(policy);
    loop {
        let wait = backoff.wait_after(round().await, period);
        tokio::time::sleep(wait).await;
    }
}

/// Runs `round` until it succeeds, and returns its result. Logs each failure with `objects`, the name of the objects to create.
///
/// # Errors
/// Returns the last failure after half a minute.
pub(crate) async fn until_done<T, R>(objects: &str, mut round: impl FnMut() -> R) -> Result<T, Box<Status>>
where
    R: Future<Output = Result<T, Box<Status>>>,
{
    let mut backoff = Backoff::new(BackoffPolicy::RECONNECT);
    let deadline = tokio::time::Instant::now() + STARTUP_TIMEOUT;
    loop {
        let status = match round().await {
            Ok(done) => return Ok(done),
            Err(status) if tokio::time::Instant::now() >= deadline => return Err(status),
            Err(status) => status,
        };
        tracing::warn!(error = %status, objects, "cannot create system objects, retrying");
        tokio::time::sleep(backoff.next_wait()).await;
    }
}
