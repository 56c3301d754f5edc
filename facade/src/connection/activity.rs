//! Activity of a connection, for its watchdog: requests in progress, an incomplete request head, or idle.
//!
//! Costs one atomic store per read and two per request, instead of a timer per request head.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::limits::ConnectionLimits;

/// Activity of one connection.
#[derive(Debug)]
pub struct Activity {
    start: Instant,
    /// Milliseconds after `start` at which the connection last became idle.
    idle_since: AtomicU64,
    /// Milliseconds plus one after `start` at which an incomplete request head began; 0 if there is none.
    head_since: AtomicU64,
    active_requests: AtomicUsize,
    /// Number of requests since the start of the connection.
    request_count: AtomicU64,
    upgraded: AtomicBool,
}

/// Decision of the watchdog on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Keep the connection.
    Healthy,
    /// No request within the idle timeout.
    Idle,
    /// A request head is incomplete after the header timeout.
    SlowHead,
}

/// A request in progress; it ends when the guard is dropped.
#[derive(Debug)]
pub struct ActiveRequestGuard(Arc<Activity>);

impl Default for Activity {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            idle_since: AtomicU64::new(0),
            head_since: AtomicU64::new(0),
            active_requests: AtomicUsize::new(0),
            request_count: AtomicU64::new(0),
            upgraded: AtomicBool::new(false),
        }
    }
}

impl Activity {
    /// Records the start of a request.
    #[must_use]
    pub fn start_request(self: &Arc<Self>) -> ActiveRequestGuard {
        self.active_requests.fetch_add(1, Ordering::Relaxed);
        self.request_count.fetch_add(1, Ordering::Relaxed);
        self.head_since.store(0, Ordering::Relaxed);
        ActiveRequestGuard(self.clone())
    }

    /// True if a request is in progress.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.active_requests.load(Ordering::Relaxed) > 0
    }

    /// Time at which the connection last became idle.
    #[must_use]
    pub fn idle_since(&self) -> Instant {
        self.start + Duration::from_millis(self.idle_since.load(Ordering::Relaxed))
    }

    /// Number of requests that have started.
    #[must_use]
    pub fn request_count(&self) -> u64 {
        self.request_count.load(Ordering::Relaxed)
    }

    /// Decides on the connection at the current time.
    #[must_use]
    pub fn verdict(&self, limits: &ConnectionLimits) -> Verdict {
        if self.is_busy() {
            return Verdict::Healthy;
        }
        let now = self.millis();
        let head = self.head_since.load(Ordering::Relaxed);
        if head != 0 && now >= (head - 1).saturating_add(millis(limits.header_timeout)) {
            return Verdict::SlowHead;
        }
        if head == 0 && now >= self.idle_deadline(limits) {
            return Verdict::Idle;
        }
        Verdict::Healthy
    }

    /// Time until the next check: the end of the idle timeout if it is near, otherwise an interval short enough to find
    /// a slow head.
    #[must_use]
    pub fn next_check(&self, limits: &ConnectionLimits) -> Duration {
        let check_interval = limits.check_interval();
        if self.is_busy() {
            return check_interval;
        }
        let remaining = self.idle_deadline(limits).saturating_sub(self.millis());
        check_interval.min(Duration::from_millis(remaining.max(1)))
    }

    /// Records that the connection was upgraded to another protocol.
    pub fn upgrade(&self) {
        self.upgraded.store(true, Ordering::Relaxed);
    }

    /// True if the connection was upgraded to another protocol.
    #[must_use]
    pub fn is_upgraded(&self) -> bool {
        self.upgraded.load(Ordering::Relaxed)
    }

    /// Records a read of HTTP/1: between requests, bytes start a request head.
    pub fn on_read(&self) {
        if self.active_requests.load(Ordering::Relaxed) == 0 {
            self.set_head_incomplete(true);
        }
    }

    /// Records whether the bytes read so far end within a request head.
    pub fn set_head_incomplete(&self, incomplete: bool) {
        if !incomplete {
            self.head_since.store(0, Ordering::Relaxed);
        } else if self.head_since.load(Ordering::Relaxed) == 0 {
            self.head_since.store(self.millis() + 1, Ordering::Relaxed);
        }
    }

    /// Time, in milliseconds after `start`, at which a connection without requests exceeds the idle timeout.
    fn idle_deadline(&self, limits: &ConnectionLimits) -> u64 {
        self.idle_since.load(Ordering::Relaxed).saturating_add(millis(limits.idle_timeout))
    }

    fn millis(&self) -> u64 {
        millis(self.start.elapsed())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Drop for ActiveRequestGuard {
    fn drop(&mut self) {
        self.0.idle_since.store(self.0.millis(), Ordering::Relaxed);
        self.0.head_since.store(0, Ordering::Relaxed);
        self.0.active_requests.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_does_not_end_is_slow_and_a_quiet_connection_is_idle() {
        let limits = ConnectionLimits {
            header_timeout: Duration::ZERO,
            idle_timeout: Duration::ZERO,
            ..ConnectionLimits::default()
        };
        let start = Instant::now().checked_sub(Duration::from_secs(5)).unwrap();
        let activity = Arc::new(Activity { start, ..Activity::default() });
        assert_eq!(activity.verdict(&limits), Verdict::Idle);
        let busy = activity.start_request();
        assert_eq!(activity.verdict(&limits), Verdict::Healthy);
        drop(busy);
        activity.on_read();
        assert_eq!(activity.verdict(&limits), Verdict::SlowHead);
        assert_eq!(activity.verdict(&ConnectionLimits::default()), Verdict::Healthy);
        activity.set_head_incomplete(false);
        assert_eq!(activity.verdict(&limits), Verdict::Idle);
    }

    #[test]
    fn an_idle_connection_is_checked_at_its_idle_deadline() {
        let start = Instant::now().checked_sub(Duration::from_secs(89)).unwrap();
        let activity = Arc::new(Activity { start, ..Activity::default() });
        let limits = ConnectionLimits::default();
        assert!(activity.next_check(&limits) <= Duration::from_secs(1));
        let _busy = activity.start_request();
        assert_eq!(activity.next_check(&limits), Duration::from_secs(8));
    }
}
