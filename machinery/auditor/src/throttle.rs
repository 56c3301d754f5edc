//! Token bucket that limits a rate (client-go's `flowcontrol`): tokens per second, and a burst.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Token bucket.
pub(super) struct Throttle {
    /// Time until one token is added.
    interval: Duration,
    /// Time at which the bucket would be full again.
    full_at: Instant,
    burst: u32,
}

impl Throttle {
    pub(super) fn new(qps: f32, burst: usize) -> Self {
        let interval = Duration::try_from_secs_f32(1.0 / qps).unwrap_or(Duration::MAX);
        Self { interval, full_at: Instant::now(), burst: u32::try_from(burst).unwrap_or(u32::MAX) }
    }

    /// Takes a token; waits for one if the bucket is empty.
    pub(super) async fn accept(&mut self) {
        let now = Instant::now();
        let capacity = self.interval.saturating_mul(self.burst);
        self.full_at = self.full_at.max(now).checked_add(self.interval).unwrap_or(now);
        let free_at = self.full_at.checked_sub(capacity).unwrap_or(now);
        if free_at > now {
            sleep_until(free_at).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_immediately_and_later_requests_are_spaced() {
        let mut throttle = Throttle::new(10.0, 3);
        let start = Instant::now();
        let mut passed = Vec::new();
        for _ in 0..5 {
            throttle.accept().await;
            passed.push(start.elapsed().as_millis() / 10);
        }
        assert_eq!(passed, [0, 0, 0, 10, 20]);
        tokio::time::advance(Duration::from_secs(10)).await;
        let start = Instant::now();
        for _ in 0..3 {
            throttle.accept().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
