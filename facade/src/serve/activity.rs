//! What a connection is doing, as the watchdog sees it: bytes read, requests under way.
//!
//! One atomic store per read and two per request, instead of a timer per request head.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::ConnectionLimits;

/// See the module.
#[derive(Debug)]
pub struct Activity {
    begin: Instant,
    /// Milliseconds after `begin` at which the connection last became idle.
    idle_since: AtomicU64,
    /// Milliseconds plus one after `begin` at which bytes came while no request was under way; 0 for never.
    head_since: AtomicU64,
    requests: AtomicUsize,
}

/// What the watchdog makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let it be.
    Fine,
    /// No request for too long.
    Idle,
    /// A request's head does not come to an end.
    SlowHead,
}

/// A request under way, over when dropped.
#[derive(Debug)]
pub struct Busy(Arc<Activity>);

impl Default for Activity {
    fn default() -> Self {
        Self {
            begin: Instant::now(),
            idle_since: AtomicU64::new(0),
            head_since: AtomicU64::new(0),
            requests: AtomicUsize::new(0),
        }
    }
}

impl Activity {
    /// Marks a request's beginning.
    #[must_use]
    pub fn busy(self: &Arc<Self>) -> Busy {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.head_since.store(0, Ordering::Relaxed);
        Busy(self.clone())
    }

    /// When the connection was accepted.
    #[must_use]
    pub fn begun(&self) -> Instant {
        self.begin
    }

    /// What to do about the connection now.
    #[must_use]
    pub fn verdict(&self, limits: &ConnectionLimits) -> Verdict {
        if self.requests.load(Ordering::Relaxed) > 0 {
            return Verdict::Fine;
        }
        let now = self.millis();
        let head = self.head_since.load(Ordering::Relaxed);
        let elapsed = |since: u64, limit: std::time::Duration| {
            u128::from(now.saturating_sub(since)) > limit.as_millis()
        };
        if head != 0 && elapsed(head - 1, limits.header_timeout) {
            return Verdict::SlowHead;
        }
        if head == 0 && elapsed(self.idle_since.load(Ordering::Relaxed), limits.idle_timeout) {
            return Verdict::Idle;
        }
        Verdict::Fine
    }

    fn read(&self) {
        if self.requests.load(Ordering::Relaxed) == 0 && self.head_since.load(Ordering::Relaxed) == 0 {
            self.head_since.store(self.millis() + 1, Ordering::Relaxed);
        }
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.idle_since.store(self.0.millis(), Ordering::Relaxed);
        self.0.head_since.store(0, Ordering::Relaxed);
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An IO object whose reads are noted.
pub(super) struct ActiveIo<I> {
    io: I,
    activity: Arc<Activity>,
}

impl<I> ActiveIo<I> {
    pub(super) fn new(io: I, activity: Arc<Activity>) -> Self {
        Self { io, activity }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for ActiveIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.activity.read();
        }
        polled
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for ActiveIo<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_head_that_does_not_end_is_slow_and_a_quiet_connection_is_idle() {
        let limits = ConnectionLimits {
            header_timeout: Duration::ZERO,
            idle_timeout: Duration::ZERO,
            ..ConnectionLimits::default()
        };
        let begin = Instant::now().checked_sub(Duration::from_secs(5)).unwrap();
        let activity = Arc::new(Activity { begin, ..Activity::default() });
        assert_eq!(activity.verdict(&limits), Verdict::Idle);
        let busy = activity.busy();
        assert_eq!(activity.verdict(&limits), Verdict::Fine);
        drop(busy);
        activity.head_since.store(1, Ordering::Relaxed);
        assert_eq!(activity.verdict(&limits), Verdict::SlowHead);
        assert_eq!(activity.verdict(&ConnectionLimits::default()), Verdict::Fine);
    }
}
