//! The gRPC listener: TLS connections, each served by tonic on the thread that accepted it.

use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::{StreamExt, stream};
use portico_auth::PeerChain;
use portico_kit::drain::Watch;
use portico_kit::http2_frames::FrameReader;
use portico_kit::listener::{AcceptedConnection, TlsIo};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::body::Body;
use tonic::service::Routes;
use tonic::transport::server::Router;
use tower::{BoxError, Layer, Service};

/// Information about the peer that every request of a connection has.
#[derive(Clone)]
pub struct ConnectionInfo {
    /// Address of the peer.
    pub address: SocketAddr,
    /// Verified certificate chain of the peer. Results of authentication are cached in it.
    pub peer_chain: Option<Arc<PeerChain>>,
}

/// Connection with its peer. Its frames are counted, because h2 handles an unlimited number of frames that only cost work.
struct Connection {
    io: TlsIo,
    frames: FrameReader,
    connected: ConnectionInfo,
    /// Dropped with the connection.
    _open: DropGuard,
}

/// Serves a connection in this runtime until it ends; after the drain signal, until its running calls have ended.
pub async fn serve<L>(server: Router<L>, accepted: AcceptedConnection, mut drained: Watch)
where
    L: Layer<Routes>,
    L::Service: Service<http::Request<Body>, Response = http::Response<Body>> + Clone + Send + 'static,
    <L::Service as Service<http::Request<Body>>>::Future: Send,
    <L::Service as Service<http::Request<Body>>>::Error: Into<BoxError> + Send,
{
    let closed = CancellationToken::new();
    let address = accepted.peer.addr;
    let peer_chain = accepted.peer.cert_chain.as_ref().and_then(|c| PeerChain::new(c)).map(Arc::new);
    let connected = ConnectionInfo { address, peer_chain };
    let (io, frames, open) = (accepted.io, FrameReader::new(), closed.clone().drop_guard());
    let connection = Connection { io, frames, connected, _open: open };
    // tonic shuts down at the end of the stream of connections, so the stream must not end.
    let incoming = stream::once(ready(Ok::<_, io::Error>(connection))).chain(stream::pending());
    let end = async move {
        tokio::select! { () = drained.signaled() => {}, () = closed.cancelled() => {} }
    };
    if let Err(error) = server.serve_with_incoming_shutdown(incoming, end).await {
        tracing::debug!(%error, "gRPC connection failed");
    }
}

impl tonic::transport::server::Connected for Connection {
    type ConnectInfo = ConnectionInfo;

    fn connect_info(&self) -> ConnectionInfo {
        self.connected.clone()
    }
}

impl Connection {
    fn count_sent(&mut self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &polled {
            self.frames.record_sent(*bytes);
        }
        polled
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        self.frames.parse_received(&buf.filled()[before..]).map_err(io::Error::other)?;
        polled
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, buf);
        self.count_sent(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.count_sent(polled)
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
