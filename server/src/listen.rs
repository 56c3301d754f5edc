//! The gRPC listener: TLS connections from kit, each served by tonic on the thread that accepted it.

use std::future::ready;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::{StreamExt, stream};
use portico_auth::PeerChain;
use portico_kit::drain::Watch;
use portico_kit::listener::{Accepted, TlsIo};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::body::Body;
use tonic::service::Routes;
use tonic::transport::server::Router;
use tower::{BoxError, Layer, Service};

/// What every request of a connection knows of its peer.
#[derive(Clone)]
pub struct Connected {
    /// The address, for people.
    pub address: String,
    /// What the peer presented and holds the key of; verdicts about it are kept here.
    pub chain: Option<Arc<PeerChain>>,
}

/// A connection with its peer.
struct Connection {
    io: TlsIo,
    connected: Connected,
    /// Dropped with the connection.
    _open: DropGuard,
}

/// Serves a connection in this runtime until it ends, or until what it has begun by the drain is done.
pub async fn serve<L>(server: Router<L>, accepted: Accepted, mut drained: Watch)
where
    L: Layer<Routes>,
    L::Service: Service<http::Request<Body>, Response = http::Response<Body>> + Clone + Send + 'static,
    <L::Service as Service<http::Request<Body>>>::Future: Send,
    <L::Service as Service<http::Request<Body>>>::Error: Into<BoxError> + Send,
{
    let closed = CancellationToken::new();
    let address = accepted.peer.addr.to_string();
    let chain = accepted.peer.chain.as_ref().and_then(|c| PeerChain::new(c)).map(Arc::new);
    let connected = Connected { address, chain };
    let connection = Connection { io: accepted.io, connected, _open: closed.clone().drop_guard() };
    // tonic takes the end of the connections to come for a stop: there are none, and no end of them.
    let incoming = stream::once(ready(Ok::<_, io::Error>(connection))).chain(stream::pending());
    let end = async move {
        tokio::select! { () = drained.signaled() => {}, () = closed.cancelled() => {} }
    };
    if let Err(error) = server.serve_with_incoming_shutdown(incoming, end).await {
        tracing::debug!(%error, "a connection was not served");
    }
}

impl tonic::transport::server::Connected for Connection {
    type ConnectInfo = Connected;

    fn connect_info(&self) -> Connected {
        self.connected.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
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
