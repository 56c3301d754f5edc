//! Work that is done in rounds: again and again at intervals, or until it is done once.

use std::time::Duration;

use portico_kit::backoff::{Backoff, Policy};
use portico_machinery::Status;

/// How long a first start may fail: a server that cannot make its first objects in this time is not well (upstream's limit
/// for the bootstrap policy).
const PATIENCE: Duration = Duration::from_secs(30);

/// Does rounds for ever, each `period` after the last, or sooner when that one has not succeeded. `round` returns whether
/// it has, and logs itself what is wrong.
pub(crate) async fn at_intervals<R>(period: Duration, policy: Policy, mut round: impl FnMut() -> R)
where
    R: Future<Output = bool>,
{
    let mut backoff = Backoff::new(policy);
    loop {
        let wait = backoff.wait_after(round().await, period);
        tokio::time::sleep(wait).await;
    }
}

/// Does rounds until one succeeds, and returns its result. Logs each failure with `objects`, the name of the objects to create.
///
/// # Errors
/// The last refusal, after half a minute.
pub(crate) async fn until_done<T, R>(objects: &str, mut round: impl FnMut() -> R) -> Result<T, Box<Status>>
where
    R: Future<Output = Result<T, Box<Status>>>,
{
    let mut backoff = Backoff::new(Policy::RECONNECT);
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        let status = match round().await {
            Ok(done) => return Ok(done),
            Err(status) if tokio::time::Instant::now() >= until => return Err(status),
            Err(status) => status,
        };
        tracing::warn!(error = %status, objects, "cannot create system objects, retrying");
        tokio::time::sleep(backoff.next_wait()).await;
    }
}
