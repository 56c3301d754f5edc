//! Freshness of the configuration: live, stale, or too old to be used; and the time of the last confirmation.
//!
//! Does not depend on the source of the configuration.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Age of the configuration. Wall-clock time is used, because a saved state was written by another process.
#[derive(Debug)]
pub struct Freshness {
    /// Unix seconds at which the configuration was last known to be current; [`LIVE`] while it is, [`NEVER`] if there is none.
    current_at: AtomicI64,
    max_age: Duration,
    start: Instant,
    /// Milliseconds plus one after `start` at which a control service last confirmed the configuration; 0 for never.
    confirmed_at: AtomicU64,
}

const LIVE: i64 = i64::MAX;
const NEVER: i64 = i64::MIN;

impl Freshness {
    /// Starts without a configuration. `max_age` is `--fail-static-max-age`.
    #[must_use]
    pub fn new(max_age: Duration) -> Self {
        Self {
            current_at: AtomicI64::new(NEVER),
            max_age,
            start: Instant::now(),
            confirmed_at: AtomicU64::new(0),
        }
    }

    /// Records that the stream is up to date.
    pub fn set_live(&self) {
        self.current_at.store(LIVE, Ordering::Release);
    }

    /// Records that a control service has confirmed the active configuration as its newest.
    pub fn confirm(&self) {
        self.confirmed_at.store(self.millis().saturating_add(1), Ordering::Release);
    }

    /// Time since the configuration was last confirmed; `None` if it never was.
    fn silence(&self) -> Option<Duration> {
        let confirmed_at = self.confirmed_at.load(Ordering::Acquire).checked_sub(1)?;
        Some(Duration::from_millis(self.millis().saturating_sub(confirmed_at)))
    }

    /// Records that the stream is lost. A live configuration counts as stale since its last confirmation.
    pub fn set_stale(&self) {
        let silence = self.silence().map_or(0, |s| i64::try_from(s.as_secs()).unwrap_or(i64::MAX));
        let since = unix_now().saturating_sub(silence);
        // A configuration that is already stale keeps its age.
        let _ = self.current_at.compare_exchange(LIVE, since, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Age of the configuration (while it is live, the time since its last confirmation); `None` if there is none.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        match self.current_at.load(Ordering::Acquire) {
            NEVER => None,
            LIVE => Some(self.silence().unwrap_or_default()),
            _ => self.stale_for(),
        }
    }

    /// Records that a saved state was loaded, which was current at this time.
    pub fn set_loaded(&self, at: SystemTime) {
        self.current_at.store(unix(at), Ordering::Release);
    }

    /// True if there is a configuration.
    #[must_use]
    pub fn has_configuration(&self) -> bool {
        self.current_at.load(Ordering::Acquire) != NEVER
    }

    /// Time for which the configuration has been stale; `None` if it is live or there is none.
    #[must_use]
    pub fn stale_for(&self) -> Option<Duration> {
        match self.current_at.load(Ordering::Acquire) {
            LIVE | NEVER => None,
            at => Some(Duration::from_secs(u64::try_from(unix_now().saturating_sub(at)).unwrap_or(0))),
        }
    }

    /// True if the configuration is stale for longer than the maximum age.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        // A single load per request while the configuration is live.
        self.current_at.load(Ordering::Acquire) < LIVE
            && self.stale_for().is_some_and(|age| age > self.max_age)
    }
}

impl Freshness {
    fn millis(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
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
        assert!(!freshness.has_configuration() && !freshness.is_expired());
        freshness.set_stale();
        assert!(!freshness.has_configuration());
        assert_eq!((freshness.silence(), freshness.age()), (None, None));
        freshness.confirm();
        freshness.set_live();
        assert_eq!(freshness.stale_for(), None);
        assert!(freshness.age().is_some() && freshness.silence().is_some());
        freshness.set_stale();
        assert!(freshness.stale_for().is_some() && !freshness.is_expired());
        freshness.set_loaded(SystemTime::now() - Duration::from_secs(61));
        assert!(freshness.is_expired());
        freshness.set_stale();
        assert!(freshness.is_expired());
        freshness.set_live();
        assert!(!freshness.is_expired());
    }
}
