//! Buffer of the last lines of a log, bounded in size, with readers of the current content and of later lines.
//!
//! Each reader continues from its position, so a slow reader misses lines and does not delay others. Does not depend
//! on the content.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

/// Bounded buffer of the last lines.
pub struct RecentLines {
    max_lines: usize,
    max_bytes: usize,
    buffer: Mutex<LineBuffer>,
    /// Number of the next line.
    next: watch::Sender<u64>,
}

#[derive(Default)]
struct LineBuffer {
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

impl RecentLines {
    /// Returns a buffer for a number of lines with a total number of bytes.
    #[must_use]
    pub fn new(max_lines: usize, max_bytes: usize) -> Self {
        Self { max_lines, max_bytes, buffer: Mutex::default(), next: watch::Sender::new(0) }
    }

    /// Adds a line, and removes the oldest lines beyond the limits. A line that is larger than the limit is not stored.
    pub fn push(&self, line: Bytes) {
        let mut buffer = self.buffer.lock();
        buffer.bytes += line.len();
        buffer.lines.push_back(line);
        while buffer.lines.len() > self.max_lines || buffer.bytes > self.max_bytes {
            let Some(oldest) = buffer.lines.pop_front() else { break };
            buffer.bytes -= oldest.len();
            buffer.first += 1;
        }
        let next = buffer.first + buffer.lines.len() as u64;
        drop(buffer);
        self.next.send_replace(next);
    }

    /// Returns all stored lines.
    #[must_use]
    pub fn read_all(&self) -> Lines {
        let first = self.buffer.lock().first;
        self.read_from(first)
    }

    /// Returns the lines from a position that an earlier read returned.
    #[must_use]
    pub fn read_from(&self, position: u64) -> Lines {
        let buffer = self.buffer.lock();
        let missed = buffer.first.saturating_sub(position);
        let skipped = usize::try_from(position.saturating_sub(buffer.first)).unwrap_or(usize::MAX);
        let lines = buffer.lines.iter().skip(skipped).cloned().collect();
        Lines { lines, missed, next: buffer.first + buffer.lines.len() as u64 }
    }

    /// Waits until there is a line at or after this position.
    pub async fn wait_for_line(&self, position: u64) {
        let mut next = self.next.subscribe();
        // `self` owns the sender, so this cannot fail.
        let _result = next.wait_for(|next| *next > position).await;
    }
}

impl std::fmt::Debug for RecentLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecentLines").field("next", &*self.next.borrow()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&'static str]) -> Vec<Bytes> {
        texts.iter().map(|line| Bytes::from_static(line.as_bytes())).collect()
    }

    #[test]
    fn the_oldest_lines_are_removed_and_readers_get_the_number_of_missed_lines() {
        let recent = RecentLines::new(3, 100);
        for line in lines(&["a", "b", "c", "d", "e"]) {
            recent.push(line);
        }
        assert_eq!(recent.read_all(), Lines { lines: lines(&["c", "d", "e"]), missed: 0, next: 5 });
        assert_eq!(recent.read_from(1), Lines { lines: lines(&["c", "d", "e"]), missed: 1, next: 5 });
        assert_eq!(recent.read_from(4), Lines { lines: lines(&["e"]), missed: 0, next: 5 });
        assert_eq!(recent.read_from(5), Lines { lines: Vec::new(), missed: 0, next: 5 });
    }

    #[test]
    fn the_size_is_limited_and_a_line_that_is_too_large_is_dropped() {
        let recent = RecentLines::new(10, 4);
        for line in lines(&["aa", "bb", "c"]) {
            recent.push(line);
        }
        assert_eq!(recent.read_all().lines, lines(&["bb", "c"]));
        recent.push(Bytes::from_static(b"too large"));
        assert_eq!(recent.read_all(), Lines { lines: Vec::new(), missed: 0, next: 4 });
        assert_eq!(recent.read_from(3).missed, 1);
    }

    #[tokio::test]
    async fn a_waiting_reader_is_woken_by_the_next_line() {
        let recent = RecentLines::new(3, 100);
        recent.push(Bytes::from_static(b"a"));
        recent.wait_for_line(0).await;
        let push = async { recent.push(Bytes::from_static(b"b")) };
        tokio::join!(recent.wait_for_line(1), push);
        assert_eq!(recent.read_from(1).lines, lines(&["b"]));
    }
}
