//! Freshness of the configuration: live, stale since a moment, or too old to be used; and the time of the last confirmation.
//!
//! It must not know where the configuration comes from.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Clock time is used, because a state from disk was written by another process.
#[derive(Debug)]
pub struct Freshness {
    /// Unix seconds at which the configuration was last known to be current; [`LIVE`] while it is; [`NEVER`] before the first.
    current_at: AtomicI64,
    max_age: Duration,
    begin: Instant,
    /// Milliseconds plus one after `begin` at which a control service last confirmed the configuration; 0 for never.
    confirmed_at: AtomicU64,
}

const LIVE: i64 = i64::MAX;
const NEVER: i64 = i64::MIN;

impl Freshness {
    /// Nothing is known yet. `max_age` is `--fail-static-max-age`.
    #[must_use]
    pub fn new(max_age: Duration) -> Self {
        Self {
            current_at: AtomicI64::new(NEVER),
            max_age,
            begin: Instant::now(),
            confirmed_at: AtomicU64::new(0),
        }
    }

    /// The stream is up to date.
    pub fn live(&self) {
        self.current_at.store(LIVE, Ordering::Release);
    }

    /// Notes that a control service has confirmed the configuration in force as its newest.
    pub fn confirm(&self) {
        self.confirmed_at.store(self.millis().saturating_add(1), Ordering::Release);
    }

    /// Time since the configuration was last confirmed, or `None` if it never was.
    fn silence(&self) -> Option<Duration> {
        let confirmed_at = self.confirmed_at.load(Ordering::Acquire).checked_sub(1)?;
        Some(Duration::from_millis(self.millis().saturating_sub(confirmed_at)))
    }

    /// The stream is lost; a live configuration has been stale since it was last confirmed.
    pub fn lost(&self) {
        let silence = self.silence().map_or(0, |s| i64::try_from(s.as_secs()).unwrap_or(i64::MAX));
        let since = unix_now().saturating_sub(silence);
        // Only a live configuration becomes stale now; an older one stays as old as it is.
        let _ = self.current_at.compare_exchange(LIVE, since, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Age of the configuration (while it is live, the time since it was last confirmed), or `None` if there is none.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        match self.current_at.load(Ordering::Acquire) {
            NEVER => None,
            LIVE => Some(self.silence().unwrap_or_default()),
            _ => self.stale_for(),
        }
    }

    /// A state from disk that was current at this time.
    pub fn loaded(&self, at: SystemTime) {
        self.current_at.store(unix(at), Ordering::Release);
    }

    /// Whether there is a configuration at all.
    #[must_use]
    pub fn known(&self) -> bool {
        self.current_at.load(Ordering::Acquire) != NEVER
    }

    /// How long it has been stale; nothing while it is live or unknown.
    #[must_use]
    pub fn stale_for(&self) -> Option<Duration> {
        match self.current_at.load(Ordering::Acquire) {
            LIVE | NEVER => None,
            at => Some(Duration::from_secs(u64::try_from(unix_now().saturating_sub(at)).unwrap_or(0))),
        }
    }

    /// Whether it is stale for longer than it may be.
    #[must_use]
    pub fn expired(&self) -> bool {
        // One load on the way of each request while live.
        self.current_at.load(Ordering::Acquire) < LIVE
            && self.stale_for().is_some_and(|age| age > self.max_age)
    }
}

impl Freshness {
    fn millis(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

fn unix_now() -> i64 {
    unix(SystemTime::now())
}

fn unix(at: SystemTime) -> i64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(LIVE - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_unknown_then_live_then_stale_then_too_old() {
        let freshness = Freshness::new(Duration::from_secs(60));
        assert!(!freshness.known() && !freshness.expired());
        freshness.lost();
        assert!(!freshness.known());
        assert_eq!((freshness.silence(), freshness.age()), (None, None));
        freshness.confirm();
        freshness.live();
        assert_eq!(freshness.stale_for(), None);
        assert!(freshness.age().is_some() && freshness.silence().is_some());
        freshness.lost();
        assert!(freshness.stale_for().is_some() && !freshness.expired());
        freshness.loaded(SystemTime::now() - Duration::from_secs(61));
        assert!(freshness.expired());
        freshness.lost();
        assert!(freshness.expired());
        freshness.live();
        assert!(!freshness.expired());
    }
}
