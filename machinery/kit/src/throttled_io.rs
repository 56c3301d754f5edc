//! Connection with a maximum rate of bytes per second in each direction.
//!
//! Data beyond the rate stays in the kernel's buffers, so that the sender has to wait.

use std::io;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Amount that may be transferred at once after a pause, as time at the full rate; at least one byte.
const BURST: Duration = Duration::from_millis(100);

/// Connection with a maximum rate; without a rate it passes all data through.
pub struct ThrottledIo<T> {
    io: T,
    read: Option<RateLimit>,
    write: Option<RateLimit>,
}

impl<T> ThrottledIo<T> {
    /// Returns a connection with a rate in bytes per second for each direction, or without a limit if `None`.
    pub fn new(io: T, rate: Option<NonZeroU32>) -> Self {
        Self { io, read: rate.map(RateLimit::new), write: rate.map(RateLimit::new) }
    }
}

/// Rate limit of one direction.
struct RateLimit {
    /// Time that one byte takes at the full rate.
    byte_time: Duration,
    burst: Duration,
    /// Time at which all bytes transferred so far would have been transferred at the full rate.
    paid_until: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl RateLimit {
    fn new(bytes: NonZeroU32) -> Self {
        let byte_time = Duration::from_secs(1) / bytes.get();
        Self { byte_time, burst: BURST.max(byte_time), paid_until: Instant::now(), sleep: None }
    }

    /// Returns the number of bytes that may be transferred now, up to `max`.
    fn poll_allowed(&mut self, cx: &mut Context<'_>, max: usize) -> Poll<usize> {
        loop {
            let now = Instant::now();
            self.paid_until = self.paid_until.max(now);
            let credit = (now + self.burst).saturating_duration_since(self.paid_until);
            let bytes = credit.as_nanos() / self.byte_time.as_nanos().max(1);
            let allowed = usize::try_from(bytes).unwrap_or(usize::MAX).min(max);
            if allowed > 0 || max == 0 {
                return Poll::Ready(allowed);
            }
            let until = self.paid_until + self.byte_time - self.burst;
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(until)));
            sleep.as_mut().reset(until);
            ready!(sleep.as_mut().poll(cx));
        }
    }

    fn record_transferred(&mut self, bytes: usize) {
        self.paid_until += self.byte_time * u32::try_from(bytes).unwrap_or(u32::MAX);
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for ThrottledIo<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let Some(rate) = &mut this.read else { return Pin::new(&mut this.io).poll_read(cx, buf) };
        let allowed = ready!(rate.poll_allowed(cx, buf.remaining()));
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(allowed));
        ready!(Pin::new(&mut this.io).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        buf.advance(read);
        rate.record_transferred(read);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for ThrottledIo<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let Some(rate) = &mut this.write else { return Pin::new(&mut this.io).poll_write(cx, buf) };
        let allowed = ready!(rate.poll_allowed(cx, buf.len()));
        let written = ready!(Pin::new(&mut this.io).poll_write(cx, &buf[..allowed]))?;
        rate.record_transferred(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// Returns the seconds that a number of bytes takes through a connection with this rate.
    async fn seconds(rate: Option<u32>, bytes: usize, writes: bool) -> u64 {
        let (one, other) = duplex(64);
        let one = ThrottledIo::new(one, rate.and_then(NonZeroU32::new));
        let start = Instant::now();
        let sent = vec![7; bytes];
        let mut received = Vec::new();
        let (mut one, mut other) = (one, other);
        let (written, read) = match writes {
            true => tokio::join!(
                async {
                    one.write_all(&sent).await?;
                    one.shutdown().await
                },
                other.read_to_end(&mut received)
            ),
            false => tokio::join!(
                async {
                    other.write_all(&sent).await?;
                    other.shutdown().await
                },
                one.read_to_end(&mut received)
            ),
        };
        written.unwrap();
        read.unwrap();
        assert_eq!(received, sent);
        start.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn each_direction_is_limited_to_the_rate() {
        for writes in [true, false] {
            for (rate, bytes, want) in [
                (None, 100_000, 0),
                (Some(1_000), 10_000, 9),
                (Some(10), 45, 4),
                (Some(1_000_000), 3_000_000, 2),
            ] {
                assert_eq!(seconds(rate, bytes, writes).await, want, "{rate:?} {bytes} {writes}");
            }
        }
    }
}
