//! Retry time of rejected clients: 1 to 32 seconds, depending on the rate of rejections (upstream's
//! `droppedRequestsTracker`, which imitates TCP: doubled on growth, decreased by one otherwise).

use std::collections::VecDeque;

/// Maximum retry time, in seconds.
const MAX_RETRY_AFTER: u64 = 32;

/// Tracker of rejected requests of one level. Times are seconds since a fixed instant.
#[derive(Clone, Debug)]
pub(crate) struct RejectionTracker {
    history: VecDeque<(u64, u64)>,
    second: Option<u64>,
    count: u64,
    retry_after: u64,
    raised_at: Option<u64>,
}

impl Default for RejectionTracker {
    fn default() -> Self {
        Self { history: VecDeque::new(), second: None, count: 0, retry_after: 1, raised_at: None }
    }
}

impl RejectionTracker {
    /// Records a rejected request, and returns the seconds after which its client should retry.
    pub(crate) fn record(&mut self, second: u64) -> u64 {
        let Some(known) = self.second else {
            (self.second, self.count) = (Some(second), 1);
            return self.retry_after;
        };
        if known >= second {
            self.count += 1;
            return self.retry_after;
        }
        self.push_history(known);
        (self.second, self.count) = (Some(second), 1);
        self.adjust_retry_after(second);
        self.retry_after
    }

    /// Returns the seconds after which a rejected client should retry.
    pub(crate) fn retry_after(&self) -> u64 {
        self.retry_after
    }

    fn push_history(&mut self, second: u64) {
        self.history.push_back((second, self.count));
        let longest = (2 * self.retry_after).min(MAX_RETRY_AFTER);
        while self.history.front().is_some_and(|(at, _)| second - at > longest) {
            self.history.pop_front();
        }
    }

    fn adjust_retry_after(&mut self, second: u64) {
        let recent = self.history.iter().filter(|(at, _)| second - at <= self.retry_after && *at < second);
        let dropped: u64 = recent.map(|(_, count)| count).sum();
        let long_ago = self.raised_at.is_none_or(|at| second - at >= self.retry_after);
        if long_ago && dropped >= 3 * self.retry_after {
            self.retry_after = (2 * self.retry_after).min(MAX_RETRY_AFTER);
            self.raised_at = Some(second);
        } else if dropped < self.retry_after && self.retry_after > 1 {
            self.retry_after -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_doubles_the_retry_time_up_to_its_limit_and_it_decreases_afterwards() {
        let mut dropped = RejectionTracker::default();
        assert_eq!(dropped.record(0), 1);
        let mut seen = Vec::new();
        for second in 0..120 {
            for _ in 0..200 {
                dropped.record(second);
            }
            seen.push(dropped.retry_after);
        }
        seen.dedup();
        assert_eq!(seen, [1, 2, 4, 8, 16, 32]);
        let mut seen = vec![32];
        for round in 1..40 {
            seen.push(dropped.record(120 + round * 100));
        }
        assert_eq!(seen.last(), Some(&1));
        assert!(seen.windows(2).all(|pair| pair[0] - pair[1] <= 1), "{seen:?}");
    }
}
