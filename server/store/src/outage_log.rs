//! Limits how often a lasting failure is logged: when it starts and at growing intervals. Its end is logged once.

use std::time::{Duration, Instant};

/// Interval after the first report.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Longest interval between reports. After this time without a failure, the next failure is logged at once.
const MAX_INTERVAL: Duration = Duration::from_secs(60);

/// State of the reports about one database or one etcd.
pub(crate) struct OutageLog {
    /// Time of the first failure since the last success.
    since: Option<Instant>,
    /// True if the outage was logged.
    is_reported: bool,
    last: Option<Instant>,
    /// Time of the next report.
    next: Option<Instant>,
    interval: Duration,
}

impl Default for OutageLog {
    fn default() -> Self {
        Self { since: None, is_reported: false, last: None, next: None, interval: MIN_INTERVAL }
    }
}

impl OutageLog {
    /// Records a failure. Returns the seconds since the first one if the failure is to be logged.
    pub(crate) fn record_failure(&mut self) -> Option<u64> {
        self.record_failure_at(Instant::now())
    }

    /// Records a success. Returns the seconds since the first failure if the outage was logged.
    pub(crate) fn record_success(&mut self) -> Option<u64> {
        self.record_success_at(Instant::now())
    }

    fn record_failure_at(&mut self, now: Instant) -> Option<u64> {
        if self.last.is_none_or(|last| now - last > MAX_INTERVAL) {
            (self.next, self.interval) = (None, MIN_INTERVAL);
        }
        self.last = Some(now);
        let since = *self.since.get_or_insert(now);
        if self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.next = Some(now + self.interval);
        self.interval = (self.interval * 2).min(MAX_INTERVAL);
        self.is_reported = true;
        Some((now - since).as_secs())
    }

    fn record_success_at(&mut self, now: Instant) -> Option<u64> {
        let since = self.since.take()?;
        std::mem::take(&mut self.is_reported).then(|| (now - since).as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_outage_is_logged_at_growing_intervals_and_its_end_once() {
        let (mut log, begin) = (OutageLog::default(), Instant::now());
        let time_at = |seconds: u64| begin + Duration::from_secs(seconds);
        let reports: Vec<u64> =
            (0..200).filter_map(|second| log.record_failure_at(time_at(second))).collect();
        assert_eq!(reports, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
        assert_eq!(log.record_success_at(time_at(200)), Some(200));
        assert_eq!(log.record_success_at(time_at(200)), None);
        // An outage that comes and goes is not logged each time.
        assert_eq!(log.record_failure_at(time_at(201)), None);
        assert_eq!(log.record_success_at(time_at(202)), None);
        assert_eq!(log.record_failure_at(time_at(300)), Some(0));
    }
}
