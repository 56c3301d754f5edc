//! How many reviews of unknown tokens may go on: anybody can invent tokens, and each review costs whoever keeps the objects.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Reviews of unknown tokens that may be under way at once.
pub const MAX_UNKNOWN_REVIEWS: usize = 16;
/// Reviews of unknown tokens that may begin within a second.
pub const MAX_UNKNOWN_REVIEWS_PER_SECOND: usize = 100;

const SECOND: Duration = Duration::from_secs(1);

/// More unknown tokens come than are reviewed; later there is room again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many unknown tokens are presented, please try again later")]
pub struct TooManyReviews;

/// Counts reviews of unknown tokens.
#[derive(Debug)]
pub(super) struct UnknownReviews(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    under_way: usize,
    /// Begun since `since`.
    begun: usize,
    since: Instant,
}

/// One review under way, over when dropped.
#[derive(Debug)]
pub(super) struct UnderWay<'a>(&'a UnknownReviews);

impl Default for UnknownReviews {
    fn default() -> Self {
        Self(Mutex::new(Counts { under_way: 0, begun: 0, since: Instant::now() }))
    }
}

impl UnknownReviews {
    /// Counts one more, if it may begin now.
    pub(super) fn begin(&self, now: Instant) -> Result<UnderWay<'_>, TooManyReviews> {
        let mut counts = self.0.lock();
        if now.saturating_duration_since(counts.since) >= SECOND {
            (counts.begun, counts.since) = (0, now);
        }
        if counts.under_way >= MAX_UNKNOWN_REVIEWS || counts.begun >= MAX_UNKNOWN_REVIEWS_PER_SECOND {
            return Err(TooManyReviews);
        }
        counts.under_way += 1;
        counts.begun += 1;
        drop(counts);
        Ok(UnderWay(self))
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.0.lock().under_way -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_under_way_and_so_many_begin_in_a_second() {
        let (reviews, begin) = (UnknownReviews::default(), Instant::now());
        let all: Vec<_> = (0..MAX_UNKNOWN_REVIEWS).map(|_| reviews.begin(begin).unwrap()).collect();
        assert!(reviews.begin(begin + 2 * SECOND).is_err(), "all places are taken");
        drop(all);
        let later = begin + 4 * SECOND;
        for _ in 0..MAX_UNKNOWN_REVIEWS_PER_SECOND {
            drop(reviews.begin(later).unwrap());
        }
        assert!(reviews.begin(later + SECOND / 2).is_err());
        assert!(reviews.begin(later + SECOND).is_ok());
    }
}
