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
    blocked: Option<BlockedWrite>,
}

/// State while the client's window is full.
struct BlockedWrite {
    since: Instant,
    /// Bytes written since then.
    written: usize,
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

    fn on_received(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(frames) = &mut self.frames else {
            self.activity.on_read();
            return Ok(());
        };
        frames.parse_received(bytes).map_err(io::Error::other)?;
        self.activity.set_head_incomplete(frames.is_in_head());
        Ok(())
    }

    fn on_written(
        &mut self,
        polled: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match polled {
            Poll::Ready(Ok(bytes)) => {
                if let Some(frames) = &mut self.frames {
                    frames.record_sent(bytes);
                }
                if let Some(blocked) = &mut self.blocked {
                    blocked.written += bytes;
                    if blocked.written >= MIN_PROGRESS {
                        (blocked.since, blocked.written) = (Instant::now(), 0);
                    }
                }
                polled
            }
            Poll::Pending => self.poll_stalled(cx).map(Err),
            Poll::Ready(Err(_)) => polled,
        }
    }

    /// Waits until the client reads. Ready with the error that ends the connection.
    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        // A terminal may be paused for any time; tunnels hold no permit and only a small buffer.
        if self.activity.is_upgraded() {
            return Poll::Pending;
        }
        let since = self.blocked.as_ref().map_or_else(Instant::now, |blocked| blocked.since);
        let stalled = since + self.stalled_write;
        let abort_at = self.exchange.deadline().map_or(stalled, |deadline| stalled.min(deadline.into()));
        let blocked = self.blocked.get_or_insert_with(|| BlockedWrite {
            since,
            written: 0,
            sleep: Box::pin(tokio::time::sleep_until(abort_at)),
        });
        if blocked.sleep.deadline() != abort_at {
            blocked.sleep.as_mut().reset(abort_at);
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
            self.on_received(bytes)?;
        }
        polled
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for ConnectionIo<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, buf);
        self.on_written(polled, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.on_written(polled, cx)
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
            Poll::Pending => self.poll_stalled(cx).map(Err),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.io).poll_shutdown(cx) {
            Poll::Ready(ended) => Poll::Ready(ended),
            Poll::Pending => self.poll_stalled(cx).map(Err),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    const STALLED: Duration = Duration::from_secs(10);

    fn connection() -> (ConnectionIo<DuplexStream>, DuplexStream) {
        let (server_end, client_end) = tokio::io::duplex(64);
        let exchange = Arc::new(Exchange::for_connection());
        (ConnectionIo::new(server_end, Arc::default(), exchange, false, STALLED), client_end)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_cut_off_and_a_slow_one_is_not() {
        let (mut io, _theirs) = connection();
        let error = io.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(io.exchange.is_aborted());

        let (mut io, mut client_end) = connection();
        let bytes = 3 * MIN_PROGRESS;
        let read = async {
            let mut piece = [0; 64];
            for _ in 0..bytes / 64 {
                client_end.read_exact(&mut piece).await.unwrap();
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
        io.exchange.start_response(Some(begin.into_std() + Duration::from_secs(1)));
        assert!(io.write_all(&[0; 1000]).await.is_err());
        assert!(begin.elapsed() < STALLED);

        let (mut io, _theirs) = connection();
        io.activity.upgrade();
        let write = tokio::time::timeout(STALLED * 3, io.write_all(&[0; 1000])).await;
        assert!(write.is_err(), "it still waits");
    }
}
