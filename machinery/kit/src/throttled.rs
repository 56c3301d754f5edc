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
pub struct Throttled<T> {
    io: T,
    read: Option<Rate>,
    write: Option<Rate>,
}

impl<T> Throttled<T> {
    /// Returns a connection with a rate in bytes per second for each direction, or without a limit if `None`.
    pub fn new(io: T, rate: Option<NonZeroU32>) -> Self {
        Self { io, read: rate.map(Rate::new), write: rate.map(Rate::new) }
    }
}

/// Rate limit of one direction.
struct Rate {
    /// Time that one byte takes at the full rate.
    byte: Duration,
    burst: Duration,
    /// Time at which all bytes transferred so far would have been transferred at the full rate.
    paid: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Rate {
    fn new(bytes: NonZeroU32) -> Self {
        let byte = Duration::from_secs(1) / bytes.get();
        Self { byte, burst: BURST.max(byte), paid: Instant::now(), sleep: None }
    }

    /// Returns the number of bytes that may be transferred now, up to `wanted`.
    fn poll_allowed(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<usize> {
        loop {
            let now = Instant::now();
            self.paid = self.paid.max(now);
            let credit = (now + self.burst).saturating_duration_since(self.paid);
            let bytes = credit.as_nanos() / self.byte.as_nanos().max(1);
            let allowed = usize::try_from(bytes).unwrap_or(usize::MAX).min(wanted);
            if allowed > 0 || wanted == 0 {
                return Poll::Ready(allowed);
            }
            let until = self.paid + self.byte - self.burst;
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(until)));
            sleep.as_mut().reset(until);
            ready!(sleep.as_mut().poll(cx));
        }
    }

    fn carried(&mut self, bytes: usize) {
        self.paid += self.byte * u32::try_from(bytes).unwrap_or(u32::MAX);
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Throttled<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let Some(rate) = &mut this.read else { return Pin::new(&mut this.io).poll_read(cx, buf) };
        let allowed = ready!(rate.poll_allowed(cx, buf.remaining()));
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(allowed));
        ready!(Pin::new(&mut this.io).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        buf.advance(read);
        rate.carried(read);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Throttled<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let Some(rate) = &mut this.write else { return Pin::new(&mut this.io).poll_write(cx, buf) };
        let allowed = ready!(rate.poll_allowed(cx, buf.len()));
        let written = ready!(Pin::new(&mut this.io).poll_write(cx, &buf[..allowed]))?;
        rate.carried(written);
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
        let one = Throttled::new(one, rate.and_then(NonZeroU32::new));
        let begin = Instant::now();
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
        begin.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_bytes_a_second_are_carried_each_way() {
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
