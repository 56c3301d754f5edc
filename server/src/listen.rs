//! The gRPC listener: TLS connections from kit, as tonic takes them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::{Stream, StreamExt};
use portico_auth::PeerChain;
use portico_kit::listener::{Incoming, TlsIo};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What every request of a connection knows of its peer.
#[derive(Clone)]
pub struct Connected {
    /// The address, for people.
    pub address: String,
    /// What the peer presented and holds the key of; verdicts about it are kept here.
    pub chain: Option<Arc<PeerChain>>,
}

/// A connection with its peer.
pub struct Connection {
    io: TlsIo,
    connected: Connected,
}

/// Adapts accepted connections.
pub fn connections(incoming: Incoming) -> impl Stream<Item = io::Result<Connection>> {
    incoming.map(|accepted| {
        let accepted = accepted?;
        let chain = accepted.peer.chain.as_ref().and_then(|c| PeerChain::new(c)).map(Arc::new);
        let connected = Connected { address: accepted.peer.addr.to_string(), chain };
        Ok(Connection { io: accepted.io, connected })
    })
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
