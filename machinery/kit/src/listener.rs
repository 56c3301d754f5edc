//! The TLS accept loop: bounded connections, a deadline for handshakes, and a drain.
//!
//! It feeds anything that takes an IO object: hyper on the facade, tonic on the control service. It must
//! not know what is spoken, nor who a peer is.

mod accept;
mod conn;

pub use conn::{Accepted, PeerInfo, TlsIo};

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener as BoundSocket};
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};
use tokio::net::TcpListener;

use crate::connection_runtimes::ConnectionRuntimes;
use crate::metrics::{Desc, Registry};
use crate::platform;
use crate::tls::ServerTls;

/// Asks the user of a listener to close a connection that it can do without.
#[derive(Clone)]
pub struct MakeRoom(Arc<dyn Fn() + Send + Sync>);

impl MakeRoom {
    /// Calls `close`.
    pub fn new(close: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(close))
    }
}

impl fmt::Debug for MakeRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeRoom")
    }
}

/// What can be chosen for a listener.
#[derive(Clone, Debug)]
pub struct ListenerOptions {
    /// Name of its tasks and in logs.
    pub name: &'static str,
    /// A connection that has not finished its handshake by then is closed.
    pub handshake_timeout: Duration,
    /// Connections at a time, those in their handshake included. When so many are up, the next one waits for a place, and further
    /// ones in the kernel's backlog.
    pub max_connections: usize,
    /// Called when a connection waits for a place.
    pub make_room: Option<MakeRoom>,
    /// TCP keep-alive period.
    pub keepalive: Duration,
    /// Whether other processes may listen at the same address and port (SO_REUSEPORT).
    pub share_port: bool,
    /// A socket that listens already, in place of one that is bound here: whoever started the process made it.
    pub passed: Option<Arc<BoundSocket>>,
    /// Threads that serve the connections; absent, they run where the listener does.
    pub runtimes: Option<Arc<ConnectionRuntimes>>,
}

impl ListenerOptions {
    /// 10 s for a handshake, 16384 connections, keep-alive every 3 minutes (upstream's).
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            handshake_timeout: Duration::from_secs(10),
            max_connections: 16_384,
            make_room: None,
            keepalive: Duration::from_secs(180),
            share_port: false,
            passed: None,
            runtimes: None,
        }
    }
}

/// Counters of a listener.
#[derive(Clone, Default)]
pub struct ListenerMetrics {
    /// `apiserver_tls_handshake_errors_total`.
    pub handshake_errors: Counter,
    /// `portico_listener_connections{listener}`.
    pub connections: Gauge,
}

impl ListenerMetrics {
    /// Registers both for the listener named `name`.
    pub fn new(registry: &Registry, name: &'static str) -> Self {
        let connections = registry.gauge_vec(Desc::gauge(
            "portico_listener_connections",
            &["listener"],
            "Open connections of a listener",
        ));
        Self {
            handshake_errors: registry.counter(Desc::counter(
                "apiserver_tls_handshake_errors_total",
                &[],
                "[ALPHA] Number of requests dropped with 'TLS handshake error from' error",
            )),
            connections: connections.get_or_create_owned(&[("listener", name.to_owned())]),
        }
    }
}

/// A bound socket with its TLS.
pub struct TlsListener {
    listener: TcpListener,
    tls: ServerTls,
    options: ListenerOptions,
    metrics: ListenerMetrics,
}

impl TlsListener {
    /// Binds `address` (port 0 = any free one) with SO_REUSEADDR, unless the options have a socket. Must run inside a tokio runtime.
    pub fn bind(
        address: SocketAddr,
        tls: ServerTls,
        options: ListenerOptions,
        metrics: ListenerMetrics,
    ) -> io::Result<Self> {
        let socket = match &options.passed {
            Some(passed) => passed.try_clone()?,
            None => bound(address, options.share_port)?,
        };
        socket.set_nonblocking(true)?;
        Ok(Self { listener: TcpListener::from_std(socket)?, tls, options, metrics })
    }

    /// Where it is bound.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The TLS, whose certificates can be replaced.
    pub fn tls(&self) -> &ServerTls {
        &self.tls
    }
}

fn bound(address: SocketAddr, share_port: bool) -> io::Result<BoundSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Elsewhere that would let others take the address while it is served.
    if cfg!(unix) {
        socket.set_reuse_address(true)?;
    }
    if share_port {
        platform::share_port(&socket)?;
    }
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    Ok(socket.into())
}

/// Keep-alive for accepted and dialed sockets.
pub(crate) fn set_keepalive(stream: &tokio::net::TcpStream, period: Duration) -> io::Result<()> {
    let keepalive = TcpKeepalive::new().with_time(period).with_interval(period);
    socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

#[cfg(test)]
mod tests;
