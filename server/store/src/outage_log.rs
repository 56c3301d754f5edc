//! Limits how often a lasting failure is logged: when it starts and at growing intervals. Its end is logged once.

use std::time::{Duration, Instant};

/// Interval after the first report.
const SHORTEST: Duration = Duration::from_secs(1);
/// Longest interval between reports. After this time without a failure, the next failure is logged at once.
const LONGEST: Duration = Duration::from_secs(60);

/// State of the reports about one database or one etcd.
pub(crate) struct OutageLog {
    /// Time of the first failure since the last success.
    since: Option<Instant>,
    /// True if the outage was logged.
    is_known: bool,
    last: Option<Instant>,
    /// Time of the next report.
    next: Option<Instant>,
    interval: Duration,
}

impl Default for OutageLog {
    fn default() -> Self {
        Self { since: None, is_known: false, last: None, next: None, interval: SHORTEST }
    }
}

impl OutageLog {
    /// Records a failure. Returns the seconds since the first one if the failure is to be logged.
    pub(crate) fn failed(&mut self) -> Option<u64> {
        self.failed_at(Instant::now())
    }

    /// Records a success. Returns the seconds since the first failure if the outage was logged.
    pub(crate) fn answered(&mut self) -> Option<u64> {
        self.answered_at(Instant::now())
    }

    fn failed_at(&mut self, now: Instant) -> Option<u64> {
        if self.last.is_none_or(|last| now - last > LONGEST) {
            (self.next, self.interval) = (None, SHORTEST);
        }
        self.last = Some(now);
        let since = *self.since.get_or_insert(now);
        if self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.next = Some(now + self.interval);
        self.interval = (self.interval * 2).min(LONGEST);
        self.is_known = true;
        Some((now - since).as_secs())
    }

    fn answered_at(&mut self, now: Instant) -> Option<u64> {
        let since = self.since.take()?;
        std::mem::take(&mut self.is_known).then(|| (now - since).as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_outage_is_logged_at_growing_intervals_and_its_end_once() {
        let (mut log, begin) = (OutageLog::default(), Instant::now());
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let reports: Vec<u64> = (0..200).filter_map(|second| log.failed_at(at(second))).collect();
        assert_eq!(reports, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
        assert_eq!(log.answered_at(at(200)), Some(200));
        assert_eq!(log.answered_at(at(200)), None);
        // An outage that comes and goes is not logged each time.
        assert_eq!(log.failed_at(at(201)), None);
        assert_eq!(log.answered_at(at(202)), None);
        assert_eq!(log.failed_at(at(300)), Some(0));
    }
}
