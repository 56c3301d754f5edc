//! Logs that the database does not answer, and that it does again: once each, and at growing intervals in between.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::failure::logged;

/// The first interval, and ...
const SHORTEST: Duration = Duration::from_secs(1);
/// ... the longest one. After so long without a failure it begins anew.
const LONGEST: Duration = Duration::from_secs(60);

/// What was logged.
pub(super) struct Outage(Mutex<State>);

struct State {
    /// Since when nothing is answered.
    since: Option<Instant>,
    /// Whether that was logged.
    is_known: bool,
    last: Option<Instant>,
    /// When it may be logged again.
    next: Option<Instant>,
    interval: Duration,
}

impl Default for Outage {
    fn default() -> Self {
        let state = State { since: None, is_known: false, last: None, next: None, interval: SHORTEST };
        Self(Mutex::new(state))
    }
}

impl Outage {
    /// The database did not answer.
    pub(super) fn failed(&self, error: &sqlx::Error) {
        let outage_seconds = self.0.lock().failed(Instant::now());
        if let Some(outage_seconds) = outage_seconds {
            tracing::error!(error = logged(error), outage_seconds, "database unavailable, retrying");
        }
    }

    /// The database has answered.
    pub(super) fn answered(&self) {
        let outage_seconds = self.0.lock().answered(Instant::now());
        if let Some(outage_seconds) = outage_seconds {
            tracing::info!(outage_seconds, "database available again");
        }
    }
}

impl State {
    /// For how many seconds, where it is time to log it.
    fn failed(&mut self, now: Instant) -> Option<u64> {
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

    /// After how many seconds, where it was logged that it did not.
    fn answered(&mut self, now: Instant) -> Option<u64> {
        let since = self.since.take()?;
        std::mem::take(&mut self.is_known).then(|| (now - since).as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_outage_is_logged_at_growing_intervals_and_its_end_once() {
        let state = Outage::default().0.into_inner();
        let (mut state, begin) = (state, Instant::now());
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let reports: Vec<u64> = (0..200).filter_map(|second| state.failed(at(second))).collect();
        assert_eq!(reports, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
        assert_eq!(state.answered(at(200)), Some(200));
        assert_eq!(state.answered(at(200)), None);
        // One that comes and goes is not logged each time.
        assert_eq!(state.failed(at(201)), None);
        assert_eq!(state.answered(at(202)), None);
        assert_eq!(state.failed(at(300)), Some(0));
    }
}
