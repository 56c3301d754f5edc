//! Times in Unix seconds: how old history is.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// So long before a time, both in Unix seconds.
pub(crate) fn before(now: i64, long: Duration) -> i64 {
    now.saturating_sub(i64::try_from(long.as_secs()).unwrap_or(i64::MAX))
}

/// Now.
pub(crate) fn now() -> i64 {
    i64::try_from(since().as_secs()).unwrap_or(i64::MAX)
}

/// A clock for the age of history: follows the system's clock, but no step of it forward. It catches up by an eighth of the time that
/// passes, so that history is kept for eight ninths of its retention at least.
pub(crate) struct AgeClock {
    now: i64,
    /// Part of the next second.
    rest: Duration,
    at: Instant,
}

impl AgeClock {
    /// The system's clock.
    pub(crate) fn new() -> Self {
        Self { now: now(), rest: Duration::ZERO, at: Instant::now() }
    }

    /// Now.
    pub(crate) fn now(&mut self) -> i64 {
        let at = Instant::now();
        let passed = at.saturating_duration_since(self.at);
        self.at = at;
        self.advance(now(), passed)
    }

    fn advance(&mut self, system: i64, passed: Duration) -> i64 {
        let passed = self.rest + passed + passed / 8;
        let most = self.now.saturating_add(i64::try_from(passed.as_secs()).unwrap_or(i64::MAX));
        (self.now, self.rest) = match system <= most {
            true => (system, Duration::ZERO),
            false => (most, Duration::from_nanos(passed.subsec_nanos().into())),
        };
        self.now
    }
}

/// Now, with parts of a second.
pub(crate) fn since() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_clock_forward_ages_nothing_at_once() {
        const DAY: i64 = 86_400;
        let second = Duration::from_secs(1);
        let mut clock = AgeClock { now: 1_000, rest: Duration::ZERO, at: Instant::now() };
        assert_eq!(clock.advance(1_001, second), 1_001);
        for passed in 2..=9 {
            assert!(clock.advance(1_000 + passed + DAY, second) <= 1_000 + passed + 1);
        }
        assert_eq!(clock.now, 1_010, "it does not catch up");
        // Neither the clock that is set right again nor one that steps back is ahead.
        assert_eq!(clock.advance(1_010, second), 1_010);
        assert_eq!(clock.advance(500, second), 500);
        // In small steps as in large ones.
        for _ in 0..8_000 {
            clock.advance(DAY, Duration::from_millis(1));
        }
        assert_eq!(clock.now, 509);
    }
}
