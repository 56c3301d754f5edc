//! One accepted connection: its IO, which holds its place under the cap, and its peer.

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

/// Who is at the other end.
#[derive(Clone, Debug)]
pub struct PeerInfo {
    /// Its address.
    pub addr: SocketAddr,
    /// The address it has connected to.
    pub local: SocketAddr,
    /// What it presented, leaf first, and proved to own; not checked against any CA.
    pub chain: Option<Arc<[CertificateDer<'static>]>>,
    /// The protocol agreed on: `h2`, `http/1.1`, or nothing.
    pub alpn: Option<Arc<[u8]>>,
    /// The server name it asked for.
    pub server_name: Option<Arc<str>>,
}

impl PeerInfo {
    /// Whether HTTP/2 was agreed on.
    pub fn is_http2(&self) -> bool {
        self.alpn.as_deref() == Some(b"h2")
    }
}

/// An accepted connection after its handshake.
pub struct Accepted {
    /// Read and write here.
    pub io: TlsIo,
    /// The peer.
    pub peer: Arc<PeerInfo>,
}

/// A place under the connection cap.
pub(super) struct Place {
    pub(super) _permit: OwnedSemaphorePermit,
    pub(super) connections: Gauge,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.dec();
    }
}

/// The TLS stream of an accepted connection. Dropping it gives its place under the cap back.
pub struct TlsIo {
    // Boxed: it is passed down some layers of futures, and each would have room for all of it.
    pub(super) stream: Box<TlsStream<TcpStream>>,
    pub(super) peer: Arc<PeerInfo>,
    pub(super) _place: Place,
}

impl TlsIo {
    /// The peer: adapters (tonic's `Connected`) read it from here.
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
