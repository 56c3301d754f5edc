//! What a connection is doing, as its watchdog sees it: requests under way, a request head that is not complete, idle.
//!
//! One atomic store per read and two per request, instead of a timer per request head.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::limits::ConnectionLimits;

/// See the module.
#[derive(Debug)]
pub struct Activity {
    begin: Instant,
    /// Milliseconds after `begin` at which the connection last became idle.
    idle_since: AtomicU64,
    /// Milliseconds plus one after `begin` at which a request head began that is not complete; 0 for none.
    head_since: AtomicU64,
    requests: AtomicUsize,
    /// Requests since the connection began.
    begun: AtomicU64,
    upgraded: AtomicBool,
}

/// What the watchdog makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let it be.
    Fine,
    /// No request for too long.
    Idle,
    /// A request's head does not come to an end.
    SlowHead,
}

/// A request under way, over when dropped.
#[derive(Debug)]
pub struct ActiveRequestGuard(Arc<Activity>);

impl Default for Activity {
    fn default() -> Self {
        Self {
            begin: Instant::now(),
            idle_since: AtomicU64::new(0),
            head_since: AtomicU64::new(0),
            requests: AtomicUsize::new(0),
            begun: AtomicU64::new(0),
            upgraded: AtomicBool::new(false),
        }
    }
}

impl Activity {
    /// Marks a request's beginning.
    #[must_use]
    pub fn busy(self: &Arc<Self>) -> ActiveRequestGuard {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.head_since.store(0, Ordering::Relaxed);
        ActiveRequestGuard(self.clone())
    }

    /// Whether a request is under way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    /// The moment at which the connection last became idle.
    #[must_use]
    pub fn idle_since(&self) -> Instant {
        self.begin + Duration::from_millis(self.idle_since.load(Ordering::Relaxed))
    }

    /// How many requests have begun.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// What to do about the connection now.
    #[must_use]
    pub fn verdict(&self, limits: &ConnectionLimits) -> Verdict {
        if self.is_busy() {
            return Verdict::Fine;
        }
        let now = self.millis();
        let head = self.head_since.load(Ordering::Relaxed);
        if head != 0 && now >= (head - 1).saturating_add(millis(limits.header_timeout)) {
            return Verdict::SlowHead;
        }
        if head == 0 && now >= self.idle_at(limits) {
            return Verdict::Idle;
        }
        Verdict::Fine
    }

    /// When to look at the verdict again: at the end of the idle time where that comes soon, otherwise often enough to
    /// find a slow head.
    #[must_use]
    pub fn next_look(&self, limits: &ConnectionLimits) -> Duration {
        let often = limits.look();
        if self.is_busy() {
            return often;
        }
        let left = self.idle_at(limits).saturating_sub(self.millis());
        often.min(Duration::from_millis(left.max(1)))
    }

    /// The connection speaks another protocol from now on.
    pub fn upgrade(&self) {
        self.upgraded.store(true, Ordering::Relaxed);
    }

    /// Whether the connection speaks another protocol.
    #[must_use]
    pub fn is_upgraded(&self) -> bool {
        self.upgraded.load(Ordering::Relaxed)
    }

    /// Notes bytes of HTTP/1: between requests they begin a head.
    pub fn read(&self) {
        if self.requests.load(Ordering::Relaxed) == 0 {
            self.head(true);
        }
    }

    /// Notes whether the bytes read so far end within a request's head.
    pub fn head(&self, incomplete: bool) {
        if !incomplete {
            self.head_since.store(0, Ordering::Relaxed);
        } else if self.head_since.load(Ordering::Relaxed) == 0 {
            self.head_since.store(self.millis() + 1, Ordering::Relaxed);
        }
    }

    /// The moment at which a connection without requests has been idle for too long.
    fn idle_at(&self, limits: &ConnectionLimits) -> u64 {
        self.idle_since.load(Ordering::Relaxed).saturating_add(millis(limits.idle_timeout))
    }

    fn millis(&self) -> u64 {
        millis(self.begin.elapsed())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Drop for ActiveRequestGuard {
    fn drop(&mut self) {
        self.0.idle_since.store(self.0.millis(), Ordering::Relaxed);
        self.0.head_since.store(0, Ordering::Relaxed);
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
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
        let begin = Instant::now().checked_sub(Duration::from_secs(5)).unwrap();
        let activity = Arc::new(Activity { begin, ..Activity::default() });
        assert_eq!(activity.verdict(&limits), Verdict::Idle);
        let busy = activity.busy();
        assert_eq!(activity.verdict(&limits), Verdict::Fine);
        drop(busy);
        activity.read();
        assert_eq!(activity.verdict(&limits), Verdict::SlowHead);
        assert_eq!(activity.verdict(&ConnectionLimits::default()), Verdict::Fine);
        activity.head(false);
        assert_eq!(activity.verdict(&limits), Verdict::Idle);
    }

    #[test]
    fn an_idle_connection_is_looked_at_when_its_time_is_over() {
        let begin = Instant::now().checked_sub(Duration::from_secs(89)).unwrap();
        let activity = Arc::new(Activity { begin, ..Activity::default() });
        let limits = ConnectionLimits::default();
        assert!(activity.next_look(&limits) <= Duration::from_secs(1));
        let _busy = activity.busy();
        assert_eq!(activity.next_look(&limits), Duration::from_secs(8));
    }
}
