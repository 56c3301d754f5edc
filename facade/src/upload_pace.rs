//! Minimum speed of a request body: a client that sends nothing, or almost nothing, holds its permit for a bounded time only.
//!
//! Does not depend on the content.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Minimum average rate of a request body in bytes per second, once `--stalled-read-timeout` has passed.
///
/// Limit (Serving): the request is aborted.
pub const MIN_BODY_RATE: u64 = 500;

/// Error of a body that is sent too slowly.
#[derive(Debug, thiserror::Error)]
#[error(
    "the client sends the request body too slowly: no data for {}, or less than {MIN_BODY_RATE} bytes per second",
    portico_gostd::time::format_duration(*.0)
)]
pub struct TooSlow(Duration);

/// Measures one body, from the first poll.
#[derive(Debug)]
pub struct UploadPace {
    /// `--stalled-read-timeout`
    max_pause: Duration,
    /// Time of the first poll, and of the last bytes.
    times: Option<(Instant, Instant)>,
    bytes: u64,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl UploadPace {
    /// Creates a measurement of a body that may pause for `max_pause`.
    #[must_use]
    pub fn new(max_pause: Duration) -> Self {
        Self { max_pause, times: None, bytes: 0, sleep: None }
    }

    /// Records bytes.
    pub fn record(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        let now = Instant::now();
        self.times = Some((self.times.map_or(now, |(begin, _)| begin), now));
    }

    /// Called while the body has no data. Ready when the client has been too slow.
    pub fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<TooSlow> {
        let now = Instant::now();
        let (start, last) = *self.times.get_or_insert((now, now));
        let earned = Duration::from_secs(self.bytes / MIN_BODY_RATE);
        let deadline = (start + self.max_pause + earned).min(last + self.max_pause);
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(cx).map(|()| TooSlow(self.max_pause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(10);

    /// Time after which a body is aborted that sends `bytes` bytes per second for `seconds` seconds.
    async fn time_until_abort(bytes: usize, seconds: u64) -> Duration {
        let (mut pace, begin) = (UploadPace::new(PAUSE), Instant::now());
        for _ in 0..seconds {
            let wait = std::future::poll_fn(|cx| pace.poll_wait(cx));
            if tokio::time::timeout(Duration::from_secs(1), wait).await.is_ok() {
                break;
            }
            pace.record(bytes);
        }
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_pauses_or_trickles_is_aborted_and_a_fast_one_is_not() {
        let (mut pace, begin) = (UploadPace::new(PAUSE), Instant::now());
        pace.record(1 << 20);
        std::future::poll_fn(|cx| pace.poll_wait(cx)).await;
        assert_eq!(begin.elapsed(), PAUSE, "no data after the first megabyte");
        assert!(time_until_abort(1, 60).await <= PAUSE + Duration::from_secs(1), "one byte per second");
        assert_eq!(time_until_abort(1000, 60).await, Duration::from_secs(60));
    }
}
