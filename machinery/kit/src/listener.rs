//! TLS accept loop: bounded connections, a handshake timeout, and a drain.
//!
//! Passes connections to any code that takes an IO object: hyper in the facade, tonic in the control service. Does
//! not depend on the protocol nor on the identity of a peer.

mod accept;
mod conn;

pub use conn::{AcceptedConnection, PeerInfo, TlsIo};

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

/// Callback by which the owner of a listener closes a connection that it does not need.
#[derive(Clone)]
pub struct EvictionCallback(Arc<dyn Fn() + Send + Sync>);

impl EvictionCallback {
    /// Wraps `close`, which is called to close a connection.
    pub fn new(close: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(close))
    }
}

impl fmt::Debug for EvictionCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeRoom")
    }
}

/// Options of a listener.
#[derive(Clone, Debug)]
pub struct ListenerOptions {
    /// Name of the listener's tasks, also used in logs.
    pub name: &'static str,
    /// Timeout of the handshake; a slower connection is closed.
    pub handshake_timeout: Duration,
    /// Maximum number of connections, including those in their handshake. At the maximum, the next connection waits for a permit,
    /// and further ones wait in the kernel's backlog.
    pub max_connections: usize,
    /// Called while a connection waits for a permit.
    pub eviction_callback: Option<EvictionCallback>,
    /// TCP keep-alive period.
    pub keepalive: Duration,
    /// True if other processes may listen on the same address and port (SO_REUSEPORT).
    pub share_port: bool,
    /// Listening socket inherited from the parent process, used instead of binding a new one.
    pub inherited_socket: Option<Arc<BoundSocket>>,
    /// Threads that serve the connections; `None` serves them on the runtime of the listener.
    pub runtimes: Option<Arc<ConnectionRuntimes>>,
}

impl ListenerOptions {
    /// Returns upstream's defaults: 10 s for a handshake, 16384 connections, keep-alive every 3 minutes.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            handshake_timeout: Duration::from_secs(10),
            max_connections: 16_384,
            eviction_callback: None,
            keepalive: Duration::from_secs(180),
            share_port: false,
            inherited_socket: None,
            runtimes: None,
        }
    }
}

/// Metrics of a listener.
#[derive(Clone, Default)]
pub struct ListenerMetrics {
    /// `apiserver_tls_handshake_errors_total`.
    pub handshake_errors: Counter,
    /// `portico_listener_connections{listener}`.
    pub connections: Gauge,
}

impl ListenerMetrics {
    /// Registers both metrics for the listener `name`.
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

/// Bound socket with its TLS settings.
pub struct TlsListener {
    listener: TcpListener,
    tls: ServerTls,
    options: ListenerOptions,
    metrics: ListenerMetrics,
}

impl TlsListener {
    /// Binds `address` (port 0 = any free port) with SO_REUSEADDR, unless the options have a socket. Must run inside
    /// a tokio runtime.
    pub fn bind(
        address: SocketAddr,
        tls: ServerTls,
        options: ListenerOptions,
        metrics: ListenerMetrics,
    ) -> io::Result<Self> {
        let socket = match &options.inherited_socket {
            Some(passed) => passed.try_clone()?,
            None => bind_socket(address, options.share_port)?,
        };
        socket.set_nonblocking(true)?;
        Ok(Self { listener: TcpListener::from_std(socket)?, tls, options, metrics })
    }

    /// Returns the bound address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the TLS settings, whose certificates can be replaced.
    pub fn tls(&self) -> &ServerTls {
        &self.tls
    }
}

fn bind_socket(address: SocketAddr, share_port: bool) -> io::Result<BoundSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // On other systems, this option would allow another process to bind the address while it is in use.
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

/// Sets keep-alive on an accepted or dialed socket.
pub(crate) fn set_keepalive(stream: &tokio::net::TcpStream, period: Duration) -> io::Result<()> {
    let keepalive = TcpKeepalive::new().with_time(period).with_interval(period);
    socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

#[cfg(test)]
mod tests;
