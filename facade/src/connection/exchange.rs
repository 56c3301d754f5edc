//! Delivery of one response: its deadline, and the time since which the client reads nothing.
//!
//! hyper polls a body only while the client makes room for more bytes, so a body cannot enforce its own deadline. The owner
//! of the transport does: the connection's IO in HTTP/1, the task of the stream in HTTP/2. Does not depend on the content
//! of responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    /// Exchange of the stream whose task is polled.
    static EXCHANGE: Arc<Exchange>;
}

/// Returns the exchange of the stream in whose task this is called; `None` in HTTP/1.
pub(super) fn of_task() -> Option<Arc<Exchange>> {
    EXCHANGE.try_with(Arc::clone).ok()
}

/// Runs the task of a stream with its exchange.
pub fn in_task<F: Future>(exchange: Arc<Exchange>, stream: F) -> TaskLocalFuture<Arc<Exchange>, F> {
    EXCHANGE.scope(exchange, stream)
}

/// Delivery of a response. In HTTP/1 the connection has one exchange for all responses, which follow each other.
#[derive(Debug)]
pub struct Exchange {
    begin: Instant,
    is_stream: bool,
    /// Milliseconds plus one after `start`; 0 if there is no deadline.
    deadline: AtomicU64,
    /// Milliseconds plus one after `start` at which bytes were offered that the client has not read; 0 while the response
    /// waits for its source.
    offered: AtomicU64,
    aborted: AtomicBool,
}

impl Exchange {
    /// Creates the exchange of all responses of an HTTP/1 connection.
    #[must_use]
    pub fn of_connection() -> Self {
        Self::new(false)
    }

    /// Creates the exchange of one HTTP/2 stream.
    #[must_use]
    pub fn of_stream() -> Self {
        Self::new(true)
    }

    fn new(is_stream: bool) -> Self {
        Self {
            begin: Instant::now(),
            is_stream,
            deadline: AtomicU64::new(0),
            offered: AtomicU64::new(0),
            aborted: AtomicBool::new(false),
        }
    }

    /// True if the exchange belongs to an HTTP/2 stream.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Starts a request; the deadline of the previous one no longer applies.
    pub fn request(&self) {
        self.deadline.store(0, Ordering::Relaxed);
    }

    /// Starts a response. The client must read the body by `deadline`, unless the deadline has already passed: the response
    /// then reports the timeout itself.
    pub fn respond(&self, deadline: Option<Instant>) {
        let deadline = deadline.filter(|at| *at > Instant::now()).map_or(0, |at| self.mark(at));
        self.deadline.store(deadline, Ordering::Relaxed);
        self.offer();
    }

    /// Records that bytes of the body are ready for the client.
    pub fn offer(&self) {
        if self.is_stream {
            self.offered.store(self.mark(Instant::now()), Ordering::Relaxed);
        }
    }

    /// Records that the response was passed to hyper. A response without a filter is complete and waits for the client
    /// from now on.
    pub fn hand_over(&self) {
        if self.offered.load(Ordering::Relaxed) == 0 {
            self.offer();
        }
    }

    /// Records that the client has read everything and the body waits for its source.
    pub fn wait_for_source(&self) {
        if self.is_stream {
            self.offered.store(0, Ordering::Relaxed);
        }
    }

    /// Time by which the client must have read the complete response.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.at(self.deadline.load(Ordering::Relaxed))
    }

    /// Time at which the response is aborted if the client continues to read nothing. While the response waits for its source,
    /// only a deadline that has passed counts.
    #[must_use]
    pub fn due(&self, stalled_write: Duration) -> Option<Instant> {
        let deadline = self.deadline();
        match self.at(self.offered.load(Ordering::Relaxed)) {
            Some(offered) => {
                let stalled = offered + stalled_write;
                Some(deadline.map_or(stalled, |deadline| deadline.min(stalled)))
            }
            None => deadline.filter(|at| *at <= Instant::now()),
        }
    }

    /// Records that the response is aborted because the client did not read it in time.
    pub fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
    }

    /// True if the response was aborted.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    fn mark(&self, at: Instant) -> u64 {
        let millis = at.saturating_duration_since(self.begin).as_millis();
        u64::try_from(millis).unwrap_or(u64::MAX).saturating_add(1)
    }

    fn at(&self, mark: u64) -> Option<Instant> {
        mark.checked_sub(1).and_then(|millis| self.begin.checked_add(Duration::from_millis(millis)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALLED: Duration = Duration::from_secs(60);

    #[test]
    fn a_response_is_due_at_its_deadline_or_when_nothing_was_taken_for_too_long() {
        let exchange = Exchange::of_stream();
        assert_eq!(exchange.due(STALLED), None, "no response yet");
        let now = Instant::now();
        exchange.respond(Some(now + Duration::from_secs(5)));
        let due = exchange.due(STALLED).unwrap();
        assert!(due <= now + Duration::from_secs(6), "the deadline is nearer");
        exchange.wait_for_source();
        assert_eq!(exchange.due(STALLED), None, "there is nothing to take");
        exchange.respond(None);
        let due = exchange.due(STALLED).unwrap();
        assert!(due > now + Duration::from_secs(59), "long-running: only the stall counts");
    }

    #[test]
    fn a_response_that_reports_a_passed_deadline_may_still_be_taken() {
        let exchange = Exchange::of_stream();
        exchange.respond(Instant::now().checked_sub(Duration::from_secs(1)));
        assert_eq!(exchange.deadline(), None);
        assert!(exchange.due(STALLED).is_some());
    }
}
