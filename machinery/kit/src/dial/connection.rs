//! A dialed connection: plain TCP, a tunnel, or TLS over either.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::client::legacy::connect::Connected;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::platform::UnixStream;

/// Protocol negotiated by ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NegotiatedAlpn {
    /// `h2`.
    Http2,
    /// `http/1.1`, or no ALPN.
    Http1,
}

/// Transport below TLS.
pub(crate) enum RawStream {
    Tcp(TcpStream),
    Uds(UnixStream),
    /// CONNECT tunnel through a proxy that itself uses TLS.
    Tls(Box<TlsStream<TcpStream>>),
}

enum ConnectionStream {
    Plain(RawStream),
    Tls(Box<TlsStream<RawStream>>),
}

/// Durations of the stages of a dial, stored in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DialTimes {
    resolve: u32,
    connect: u32,
    tls: u32,
}

impl DialTimes {
    pub(super) fn from_tcp(resolve: Duration, connect: Duration) -> Self {
        Self { resolve: micros(resolve), connect: micros(connect), tls: 0 }
    }

    pub(super) fn with_tls(self, tls: Duration) -> Self {
        Self { tls: micros(tls), ..self }
    }

    /// Returns the duration of name resolution.
    pub fn resolve(&self) -> Duration {
        Duration::from_micros(self.resolve.into())
    }

    /// Returns the duration of the TCP connection, or of the tunnel through an egress proxy.
    pub fn connect(&self) -> Duration {
        Duration::from_micros(self.connect.into())
    }

    /// Returns the duration of the TLS handshake.
    pub fn tls(&self) -> Duration {
        Duration::from_micros(self.tls.into())
    }
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

/// Connection to a backend.
pub struct Connection {
    io: ConnectionStream,
    remote: Option<SocketAddr>,
    alpn: NegotiatedAlpn,
    times: DialTimes,
}

impl Connection {
    pub(super) fn plain(raw: RawStream, remote: Option<SocketAddr>, times: DialTimes) -> Self {
        Self { io: ConnectionStream::Plain(raw), remote, alpn: NegotiatedAlpn::Http1, times }
    }

    pub(super) fn tls(stream: TlsStream<RawStream>, remote: Option<SocketAddr>, times: DialTimes) -> Self {
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let alpn = if http2 { NegotiatedAlpn::Http2 } else { NegotiatedAlpn::Http1 };
        Self { io: ConnectionStream::Tls(Box::new(stream)), remote, alpn, times }
    }

    /// Returns the dialed address; `None` through an egress proxy.
    pub fn remote_addr(&self) -> Option<SocketAddr> {
        self.remote
    }

    /// Returns the durations of the dial.
    pub fn times(&self) -> DialTimes {
        self.times
    }

    /// Returns the negotiated protocol.
    pub fn alpn(&self) -> NegotiatedAlpn {
        self.alpn
    }

    /// Returns the certificates of the server, leaf first, or `None` without TLS.
    pub fn peer_certificates(&self) -> Option<&[rustls_pki_types::CertificateDer<'static>]> {
        match &self.io {
            ConnectionStream::Plain(_) => None,
            ConnectionStream::Tls(stream) => stream.get_ref().1.peer_certificates(),
        }
    }
}

impl From<UnixStream> for Connection {
    /// Wraps an open socket, without TLS.
    fn from(stream: UnixStream) -> Self {
        Self::plain(RawStream::Uds(stream), None, DialTimes::default())
    }
}

impl hyper_util::client::legacy::connect::Connection for Connection {
    fn connected(&self) -> Connected {
        let connected = Connected::new();
        match self.alpn {
            NegotiatedAlpn::Http2 => connected.negotiated_h2(),
            NegotiatedAlpn::Http1 => connected,
        }
    }
}

macro_rules! on_raw {
    ($self:expr, $io:ident => $call:expr) => {
        match $self.get_mut() {
            RawStream::Tcp($io) => $call,
            RawStream::Uds($io) => $call,
            RawStream::Tls($io) => $call,
        }
    };
}

macro_rules! on_io {
    ($self:expr, $io:ident => $call:expr) => {
        match &mut $self.get_mut().io {
            ConnectionStream::Plain($io) => $call,
            ConnectionStream::Tls($io) => $call,
        }
    };
}

impl AsyncRead for RawStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        on_raw!(self, io => Pin::new(io).poll_read(cx, buf))
    }
}

impl AsyncWrite for RawStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        on_raw!(self, io => Pin::new(io).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on_raw!(self, io => Pin::new(io).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_raw!(self, io => Pin::new(io).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_raw!(self, io => Pin::new(io).poll_shutdown(cx))
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        on_io!(self, io => Pin::new(io).poll_read(cx, buf))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        on_io!(self, io => Pin::new(io).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on_io!(self, io => Pin::new(io).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_io!(self, io => Pin::new(io).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_io!(self, io => Pin::new(io).poll_shutdown(cx))
    }
}
