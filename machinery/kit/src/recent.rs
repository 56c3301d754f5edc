//! The last lines of something: kept within bounds, read by whoever looks now and whoever goes on looking.
//!
//! Every reader goes on from its own place, so that a slow one misses lines and delays nobody. It must not know what a line says.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

/// See the module.
pub struct Recent {
    max_lines: usize,
    max_bytes: usize,
    kept: Mutex<Kept>,
    /// The number of the next line.
    next: watch::Sender<u64>,
}

#[derive(Default)]
struct Kept {
    lines: VecDeque<Bytes>,
    bytes: usize,
    /// The number of the oldest line.
    first: u64,
}

/// What a reader gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Oldest first.
    pub lines: Vec<Bytes>,
    /// How many came before these that are no longer kept.
    pub missed: u64,
    /// Where to go on.
    pub next: u64,
}

impl Recent {
    /// Keeps so many lines, of so many bytes together.
    #[must_use]
    pub fn new(max_lines: usize, max_bytes: usize) -> Self {
        Self { max_lines, max_bytes, kept: Mutex::default(), next: watch::Sender::new(0) }
    }

    /// Adds a line; the oldest ones go until there is room. One that is too large by itself is missed by everybody.
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

    /// All that is kept.
    #[must_use]
    pub fn all(&self) -> Lines {
        let first = self.kept.lock().first;
        self.from(first)
    }

    /// The lines from `place` on, which an earlier read returned.
    #[must_use]
    pub fn from(&self, place: u64) -> Lines {
        let kept = self.kept.lock();
        let missed = kept.first.saturating_sub(place);
        let skipped = usize::try_from(place.saturating_sub(kept.first)).unwrap_or(usize::MAX);
        let lines = kept.lines.iter().skip(skipped).cloned().collect();
        Lines { lines, missed, next: kept.first + kept.lines.len() as u64 }
    }

    /// Waits until there is a line behind this place.
    pub async fn grown(&self, place: u64) {
        let mut next = self.next.subscribe();
        // The sender is here.
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
