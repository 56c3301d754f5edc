//! Times in Unix seconds, for the age of history.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Returns the time this long before another one, both in Unix seconds.
pub(crate) fn subtract(now: i64, duration: Duration) -> i64 {
    now.saturating_sub(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
}

/// Returns the current time.
pub(crate) fn now() -> i64 {
    i64::try_from(since_epoch().as_secs()).unwrap_or(i64::MAX)
}

/// Largest step of the system clock that is adopted at once, and the running time of the process before a larger step is adopted.
const MAX_STEP: Duration = Duration::from_secs(3_600);

/// Clock for the age of history. Follows the system clock, but a large forward step must persist first: a wrong time that is
/// corrected soon deletes no history. A suspended machine causes such a step, because the monotonic clock stops.
#[derive(Debug)]
pub struct AgeClock {
    /// Time since the Unix epoch.
    now: Duration,
    read_at: Instant,
    /// Running time of the process since the system clock was found ahead.
    ahead_for: Option<Duration>,
}

impl AgeClock {
    /// Starts with the time of the system clock.
    pub fn new() -> Self {
        Self { now: since_epoch(), read_at: Instant::now(), ahead_for: None }
    }

    /// Returns the time in Unix seconds.
    pub fn now(&mut self) -> i64 {
        let read_at = Instant::now();
        let elapsed = read_at.saturating_duration_since(self.read_at);
        self.read_at = read_at;
        self.advance(since_epoch(), elapsed);
        i64::try_from(self.now.as_secs()).unwrap_or(i64::MAX)
    }

    fn advance(&mut self, system: Duration, elapsed: Duration) {
        let expected = self.now + elapsed;
        let is_ahead = system > expected + MAX_STEP;
        self.ahead_for = is_ahead.then(|| self.ahead_for.map_or(Duration::ZERO, |time| time + elapsed));
        match self.ahead_for {
            Some(time) if time < MAX_STEP => self.now = expected,
            _ => (self.now, self.ahead_for) = (system, None),
        }
    }
}

impl Default for AgeClock {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the current time with fractions of a second.
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const DAY: Duration = Duration::from_secs(86_400);

    fn clock() -> AgeClock {
        AgeClock { now: DAY, read_at: Instant::now(), ahead_for: None }
    }

    #[test]
    fn a_large_step_of_the_clock_forward_ages_nothing_before_it_has_persisted() {
        let mut clock = clock();
        for minute in 1..=60 {
            clock.advance(DAY * 2 + MINUTE * minute, MINUTE);
            assert_eq!(clock.now, DAY + MINUTE * minute);
        }
        clock.advance(DAY * 2 + MINUTE * 61, MINUTE);
        assert_eq!(clock.now, DAY * 2 + MINUTE * 61);
        // The next step must persist as well: the time before it was noticed does not count.
        clock.advance(DAY * 3 + MINUTE * 161, MINUTE * 100);
        assert_eq!(clock.now, DAY * 2 + MINUTE * 161);
    }

    #[test]
    fn small_steps_steps_back_and_corrections_of_the_clock_are_adopted_at_once() {
        let mut clock = clock();
        clock.advance(DAY + MINUTE * 59, MINUTE);
        assert_eq!(clock.now, DAY + MINUTE * 59);
        clock.advance(DAY * 9, MINUTE);
        clock.advance(DAY + MINUTE * 61, MINUTE);
        assert_eq!(clock.now, DAY + MINUTE * 61);
        clock.advance(MINUTE, MINUTE);
        assert_eq!(clock.now, MINUTE);
        // The time since the corrected step does not count.
        clock.advance(DAY, MINUTE);
        assert_eq!(clock.now, MINUTE * 2);
    }

    #[test]
    fn history_ages_while_a_machine_is_suspended_more_than_it_runs() {
        let mut clock = clock();
        let mut system = clock.now;
        let night = DAY / 3;
        for _ in 0..100 {
            system += night + MINUTE * 20;
            clock.advance(system, MINUTE * 20);
            assert!(system - clock.now <= night * 3);
        }
    }
}
