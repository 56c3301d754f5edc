//! Accepted connection: its IO, which includes the permit, and its peer.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use prometheus_client::metrics::gauge::Gauge;
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::server::TlsStream;

/// Peer of a connection.
#[derive(Clone, Debug)]
pub struct PeerInfo {
    /// Address of the peer.
    pub addr: SocketAddr,
    /// Local address of the connection.
    pub local_addr: SocketAddr,
    /// Certificates that the peer presented, leaf first, whose key it has proved to own. Not verified against any CA.
    pub cert_chain: Option<Arc<[CertificateDer<'static>]>>,
    /// Negotiated protocol: `h2`, `http/1.1`, or `None`.
    pub alpn: Option<Arc<[u8]>>,
    /// Server name in the handshake (SNI), if any.
    pub server_name: Option<Arc<str>>,
}

impl PeerInfo {
    /// True if HTTP/2 was negotiated.
    pub fn is_http2(&self) -> bool {
        self.alpn.as_deref() == Some(b"h2")
    }
}

/// Accepted connection after its handshake.
pub struct AcceptedConnection {
    /// Decrypted stream.
    pub io: TlsIo,
    /// Peer of the connection.
    pub peer: Arc<PeerInfo>,
}

/// Permit for one connection within the maximum.
pub(super) struct ConnectionPermit {
    pub(super) _permit: OwnedSemaphorePermit,
    pub(super) connections: Gauge,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.connections.dec();
    }
}

/// TLS stream of an accepted connection. Dropping it returns its permit.
pub struct TlsIo {
    // Boxed, because it moves through several layers of futures, each of which would reserve its size.
    pub(super) stream: Box<TlsStream<TcpStream>>,
    pub(super) peer: Arc<PeerInfo>,
    pub(super) _permit: ConnectionPermit,
}

impl TlsIo {
    /// Returns the peer, for adapters such as tonic's `Connected`.
    pub fn peer(&self) -> &Arc<PeerInfo> {
        &self.peer
    }
}

impl AsyncRead for TlsIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for TlsIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
