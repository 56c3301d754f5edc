//! Buffer of the last lines of a log, bounded in size, with readers of the current content and of later lines.
//!
//! Each reader continues from its position, so a slow reader misses lines and does not delay others. Does not depend
//! on the content.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

/// Bounded buffer of the last lines.
pub struct Recent {
    max_lines: usize,
    max_bytes: usize,
    kept: Mutex<Kept>,
    /// Number of the next line.
    next: watch::Sender<u64>,
}

#[derive(Default)]
struct Kept {
    lines: VecDeque<Bytes>,
    bytes: usize,
    /// Number of the oldest line.
    first: u64,
}

/// Result of a read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Lines, oldest first.
    pub lines: Vec<Bytes>,
    /// Number of requested lines before these that are no longer stored.
    pub missed: u64,
    /// Position after the last line, for the next read.
    pub next: u64,
}

impl Recent {
    /// Returns a buffer for a number of lines with a total number of bytes.
    #[must_use]
    pub fn new(max_lines: usize, max_bytes: usize) -> Self {
        Self { max_lines, max_bytes, kept: Mutex::default(), next: watch::Sender::new(0) }
    }

    /// Adds a line, and removes the oldest lines beyond the limits. A line that is larger than the limit is not stored.
    pub fn push(&self, line: Bytes) {
        let mut kept = self.kept.lock();
        kept.bytes += line.len();
        kept.lines.push_back(line);
        while kept.lines.len() > self.max_lines || kept.bytes > self.max_bytes {
            let Some(oldest) = kept.lines.pop_front() else { break };
            kept.bytes -= oldest.len();
            kept.first += 1;
        }
        let next = kept.first + kept.lines.len() as u64;
        drop(kept);
        self.next.send_replace(next);
    }

    /// Returns all stored lines.
    #[must_use]
    pub fn all(&self) -> Lines {
        let first = self.kept.lock().first;
        self.from(first)
    }

    /// Returns the lines from a position that an earlier read returned.
    #[must_use]
    pub fn from(&self, place: u64) -> Lines {
        let kept = self.kept.lock();
        let missed = kept.first.saturating_sub(place);
        let skipped = usize::try_from(place.saturating_sub(kept.first)).unwrap_or(usize::MAX);
        let lines = kept.lines.iter().skip(skipped).cloned().collect();
        Lines { lines, missed, next: kept.first + kept.lines.len() as u64 }
    }

    /// Waits until there is a line at or after this position.
    pub async fn grown(&self, place: u64) {
        let mut next = self.next.subscribe();
        // `self` owns the sender, so this cannot fail.
        let _never_gone = next.wait_for(|next| *next > place).await;
    }
}

impl std::fmt::Debug for Recent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recent").field("next", &*self.next.borrow()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(of: &[&'static str]) -> Vec<Bytes> {
        of.iter().map(|line| Bytes::from_static(line.as_bytes())).collect()
    }

    #[test]
    fn the_oldest_lines_go_and_readers_get_the_number_of_lines_that_they_miss() {
        let recent = Recent::new(3, 100);
        for line in lines(&["a", "b", "c", "d", "e"]) {
            recent.push(line);
        }
        assert_eq!(recent.all(), Lines { lines: lines(&["c", "d", "e"]), missed: 0, next: 5 });
        assert_eq!(recent.from(1), Lines { lines: lines(&["c", "d", "e"]), missed: 1, next: 5 });
        assert_eq!(recent.from(4), Lines { lines: lines(&["e"]), missed: 0, next: 5 });
        assert_eq!(recent.from(5), Lines { lines: Vec::new(), missed: 0, next: 5 });
    }

    #[test]
    fn lines_stay_within_their_bytes_and_one_that_is_too_large_is_missed() {
        let recent = Recent::new(10, 4);
        for line in lines(&["aa", "bb", "c"]) {
            recent.push(line);
        }
        assert_eq!(recent.all().lines, lines(&["bb", "c"]));
        recent.push(Bytes::from_static(b"too large"));
        assert_eq!(recent.all(), Lines { lines: Vec::new(), missed: 0, next: 4 });
        assert_eq!(recent.from(3).missed, 1);
    }

    #[tokio::test]
    async fn a_reader_who_waits_is_woken_by_the_next_line() {
        let recent = Recent::new(3, 100);
        recent.push(Bytes::from_static(b"a"));
        recent.grown(0).await;
        let push = async { recent.push(Bytes::from_static(b"b")) };
        tokio::join!(recent.grown(1), push);
        assert_eq!(recent.from(1).lines, lines(&["b"]));
    }
}
