//! IO of a connection: records reads, and cuts off a client that has stalled for too long.
//!
//! The timer is here because only the IO detects a client that does not read: hyper then waits for the socket and polls no body.
//! Does not depend on the content of the bytes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use portico_kit::http2_frames::FrameReader;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::connection::{Activity, Exchange};

/// Minimum progress of a blocked connection in bytes: the buffers of TLS accept fewer bytes even if the client has stalled.
const MIN_PROGRESS: usize = 64 * 1024;

/// IO of one connection.
pub(super) struct ConnectionIo<I> {
    io: I,
    activity: Arc<Activity>,
    /// Exchange of HTTP/1, where the connection ends with the response that is late; for HTTP/2 it has no deadline.
    exchange: Arc<Exchange>,
    /// Set for HTTP/2.
    frames: Option<FrameReader>,
    stalled_write: Duration,
    blocked: Option<Blocked>,
}

/// State while the client's window is full.
struct Blocked {
    since: Instant,
    /// Bytes written since then.
    taken: usize,
    sleep: Pin<Box<Sleep>>,
}

impl<I> ConnectionIo<I> {
    pub(super) fn new(
        io: I,
        activity: Arc<Activity>,
        exchange: Arc<Exchange>,
        is_http2: bool,
        stalled_write: Duration,
    ) -> Self {
        let frames = is_http2.then(FrameReader::new);
        Self { io, activity, exchange, frames, stalled_write, blocked: None }
    }

    fn received(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(frames) = &mut self.frames else {
            self.activity.read();
            return Ok(());
        };
        frames.read(bytes).map_err(io::Error::other)?;
        self.activity.head(frames.in_head());
        Ok(())
    }

    fn written(&mut self, polled: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match polled {
            Poll::Ready(Ok(bytes)) => {
                if let Some(frames) = &mut self.frames {
                    frames.sent(bytes);
                }
                if let Some(blocked) = &mut self.blocked {
                    blocked.taken += bytes;
                    if blocked.taken >= MIN_PROGRESS {
                        (blocked.since, blocked.taken) = (Instant::now(), 0);
                    }
                }
                polled
            }
            Poll::Pending => self.wait(cx).map(Err),
            Poll::Ready(Err(_)) => polled,
        }
    }

    /// Waits until the client reads. Ready with the error that ends the connection.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        // A terminal may be paused for any time; tunnels hold no permit and only a small buffer.
        if self.activity.is_upgraded() {
            return Poll::Pending;
        }
        let since = self.blocked.as_ref().map_or_else(Instant::now, |blocked| blocked.since);
        let stalled = since + self.stalled_write;
        let due = self.exchange.deadline().map_or(stalled, |deadline| stalled.min(deadline.into()));
        let blocked = self.blocked.get_or_insert_with(|| Blocked {
            since,
            taken: 0,
            sleep: Box::pin(tokio::time::sleep_until(due)),
        });
        if blocked.sleep.deadline() != due {
            blocked.sleep.as_mut().reset(due);
        }
        blocked.sleep.as_mut().poll(cx).map(|()| {
            self.exchange.abort();
            io::Error::new(io::ErrorKind::TimedOut, "the client does not read the response")
        })
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for ConnectionIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        let bytes = &buf.filled()[before..];
        if !bytes.is_empty() {
            self.received(bytes)?;
        }
        polled
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for ConnectionIo<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, buf);
        self.written(polled, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.written(polled, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.io).poll_flush(cx) {
            Poll::Ready(ended) => {
                self.blocked = None;
                Poll::Ready(ended)
            }
            Poll::Pending => self.wait(cx).map(Err),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.io).poll_shutdown(cx) {
            Poll::Ready(ended) => Poll::Ready(ended),
            Poll::Pending => self.wait(cx).map(Err),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    const STALLED: Duration = Duration::from_secs(10);

    fn connection() -> (ConnectionIo<DuplexStream>, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(64);
        let exchange = Arc::new(Exchange::of_connection());
        (ConnectionIo::new(ours, Arc::default(), exchange, false, STALLED), theirs)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_cut_off_and_a_slow_one_is_not() {
        let (mut io, _theirs) = connection();
        let error = io.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(io.exchange.is_aborted());

        let (mut io, mut theirs) = connection();
        let bytes = 3 * MIN_PROGRESS;
        let read = async {
            let mut piece = [0; 64];
            for _ in 0..bytes / 64 {
                theirs.read_exact(&mut piece).await.unwrap();
                // The slowest allowed speed: exactly the minimum progress within the timeout.
                tokio::time::advance(STALLED / 1100).await;
            }
        };
        let written = vec![0; bytes];
        let (written, ()) = tokio::join!(io.write_all(&written), read);
        written.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_cuts_off_a_client_however_it_reads_and_a_tunnel_may_wait() {
        let (mut io, _theirs) = connection();
        let begin = Instant::now();
        // The exchange uses the system's clock, which is not paused.
        io.exchange.respond(Some(begin.into_std() + Duration::from_secs(1)));
        assert!(io.write_all(&[0; 1000]).await.is_err());
        assert!(begin.elapsed() < STALLED);

        let (mut io, _theirs) = connection();
        io.activity.upgrade();
        let waited = tokio::time::timeout(STALLED * 3, io.write_all(&[0; 1000])).await;
        assert!(waited.is_err(), "it still waits");
    }
}
