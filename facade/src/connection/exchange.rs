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
pub(super) fn current() -> Option<Arc<Exchange>> {
    EXCHANGE.try_with(Arc::clone).ok()
}

/// Runs the task of a stream with its exchange.
pub fn scope<F: Future>(exchange: Arc<Exchange>, stream: F) -> TaskLocalFuture<Arc<Exchange>, F> {
    EXCHANGE.scope(exchange, stream)
}

/// Delivery of a response. In HTTP/1 the connection has one exchange for all responses, which follow each other.
#[derive(Debug)]
pub struct Exchange {
    start: Instant,
    is_stream: bool,
    /// Milliseconds plus one after `start`; 0 if there is no deadline.
    deadline: AtomicU64,
    /// Milliseconds plus one after `start` at which bytes were offered that the client has not read; 0 while the response
    /// waits for its source.
    offered_at: AtomicU64,
    aborted: AtomicBool,
}

impl Exchange {
    /// Creates the exchange of all responses of an HTTP/1 connection.
    #[must_use]
    pub fn for_connection() -> Self {
        Self::new(false)
    }

    /// Creates the exchange of one HTTP/2 stream.
    #[must_use]
    pub fn for_stream() -> Self {
        Self::new(true)
    }

    fn new(is_stream: bool) -> Self {
        Self {
            start: Instant::now(),
            is_stream,
            deadline: AtomicU64::new(0),
            offered_at: AtomicU64::new(0),
            aborted: AtomicBool::new(false),
        }
    }

    /// True if the exchange belongs to an HTTP/2 stream.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Starts a request; the deadline of the previous one no longer applies.
    pub fn start_request(&self) {
        self.deadline.store(0, Ordering::Relaxed);
    }

    /// Starts a response. The client must read the body by `deadline`, unless the deadline has already passed: the response
    /// then reports the timeout itself.
    pub fn start_response(&self, deadline: Option<Instant>) {
        let deadline = deadline.filter(|at| *at > Instant::now()).map_or(0, |at| self.offset_of(at));
        self.deadline.store(deadline, Ordering::Relaxed);
        self.mark_offered();
    }

    /// Records that bytes of the body are ready for the client.
    pub fn mark_offered(&self) {
        if self.is_stream {
            self.offered_at.store(self.offset_of(Instant::now()), Ordering::Relaxed);
        }
    }

    /// Records that the response was passed to hyper. A response without a filter is complete and waits for the client
    /// from now on.
    pub fn record_handover(&self) {
        if self.offered_at.load(Ordering::Relaxed) == 0 {
            self.mark_offered();
        }
    }

    /// Records that the client has read everything and the body waits for its source.
    pub fn wait_for_source(&self) {
        if self.is_stream {
            self.offered_at.store(0, Ordering::Relaxed);
        }
    }

    /// Time by which the client must have read the complete response.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.instant_at(self.deadline.load(Ordering::Relaxed))
    }

    /// Time at which the response is aborted if the client continues to read nothing. While the response waits for its source,
    /// only a deadline that has passed counts.
    #[must_use]
    pub fn abort_at(&self, stalled_write: Duration) -> Option<Instant> {
        let deadline = self.deadline();
        match self.instant_at(self.offered_at.load(Ordering::Relaxed)) {
            Some(offered_at) => {
                let stalled = offered_at + stalled_write;
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

    fn offset_of(&self, at: Instant) -> u64 {
        let millis = at.saturating_duration_since(self.start).as_millis();
        u64::try_from(millis).unwrap_or(u64::MAX).saturating_add(1)
    }

    fn instant_at(&self, offset: u64) -> Option<Instant> {
        offset.checked_sub(1).and_then(|millis| self.start.checked_add(Duration::from_millis(millis)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALLED: Duration = Duration::from_secs(60);

    #[test]
    fn a_response_is_aborted_at_its_deadline_or_when_the_client_stalls() {
        let exchange = Exchange::for_stream();
        assert_eq!(exchange.abort_at(STALLED), None, "no response yet");
        let now = Instant::now();
        exchange.start_response(Some(now + Duration::from_secs(5)));
        let abort_at = exchange.abort_at(STALLED).unwrap();
        assert!(abort_at <= now + Duration::from_secs(6), "the deadline is earlier than the stall timeout");
        exchange.wait_for_source();
        assert_eq!(exchange.abort_at(STALLED), None, "the response waits for its source");
        exchange.start_response(None);
        let abort_at = exchange.abort_at(STALLED).unwrap();
        assert!(abort_at > now + Duration::from_secs(59), "long-running: only the stall counts");
    }

    #[test]
    fn a_response_that_reports_a_passed_deadline_is_still_delivered() {
        let exchange = Exchange::for_stream();
        exchange.start_response(Instant::now().checked_sub(Duration::from_secs(1)));
        assert_eq!(exchange.deadline(), None);
        assert!(exchange.abort_at(STALLED).is_some());
    }
}
