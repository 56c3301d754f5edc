//! Stages of a dial, in order, each with its deadline.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use super::connection::{DialTimes, RawStream};
use super::{AddressPolicy, Connection, DialError, Target, io_reason};
use crate::egress::EgressDialer;
use crate::listener::set_keepalive;
use crate::tls::ClientTls;

/// Limits and rules of a connector.
#[derive(Clone, Debug)]
pub struct ConnectorOptions {
    /// Timeout of resolution and TCP connection together.
    pub dial_timeout: Duration,
    /// Timeout of the TLS handshake.
    pub tls_timeout: Duration,
    /// TCP keep-alive period.
    pub keepalive: Duration,
    /// Rules for addresses that must not be dialed.
    pub policy: AddressPolicy,
}

impl Default for ConnectorOptions {
    /// Upstream's defaults: 30 s to dial, 10 s for TLS, keep-alive every 30 s.
    fn default() -> Self {
        Self {
            dial_timeout: Duration::from_secs(30),
            tls_timeout: Duration::from_secs(10),
            keepalive: Duration::from_secs(30),
            policy: AddressPolicy::default(),
        }
    }
}

/// Dialer of backends. Cheap to clone.
#[derive(Clone)]
pub struct Connector {
    inner: Arc<Inner>,
}

/// Connection, its remote address if known, and the durations of the stages.
type DialedConnection = (RawStream, Option<SocketAddr>, DialTimes);

struct Inner {
    options: ConnectorOptions,
    egress: Option<EgressDialer>,
}

impl Connector {
    /// Returns a connector that dials directly.
    pub fn new(options: ConnectorOptions) -> Self {
        Self { inner: Arc::new(Inner { options, egress: None }) }
    }

    /// Returns a connector that dials through an egress proxy. The proxy then resolves names, so the address rules apply only
    /// to targets that are addresses.
    pub fn with_egress(options: ConnectorOptions, egress: Option<EgressDialer>) -> Self {
        Self { inner: Arc::new(Inner { options, egress }) }
    }

    /// Returns a connector with the same limits and rules and another egress proxy; `None` dials directly.
    pub fn clone_with_egress(&self, egress: Option<EgressDialer>) -> Self {
        Self::with_egress(self.inner.options.clone(), egress)
    }

    /// Returns the address rules, for example to add listeners of this process.
    pub fn policy(&self) -> &AddressPolicy {
        &self.inner.options.policy
    }

    /// Opens a connection without TLS.
    pub async fn connect_plain(&self, target: &Target) -> Result<Connection, DialError> {
        let (raw, remote, times) = self.connect_raw(target).await?;
        Ok(Connection::plain(raw, remote, times))
    }

    /// Opens a TLS connection. The server name is that of `tls`, or by default the host of the target.
    pub async fn connect_tls(&self, target: &Target, tls: &ClientTls) -> Result<Connection, DialError> {
        let name = match tls.server_name() {
            Some(name) => name.clone(),
            None => crate::tls::server_name(target.host.clone())
                .map_err(|error| DialError::from_tls(target, &error))?,
        };
        let raw = self.connect_raw(target).await?;
        self.handshake(target, tls, name, raw).await
    }

    async fn handshake(
        &self,
        target: &Target,
        tls: &ClientTls,
        name: ServerName<'static>,
        (raw, remote, times): DialedConnection,
    ) -> Result<Connection, DialError> {
        let start = Instant::now();
        let limit = self.inner.options.tls_timeout;
        let handshake = TlsConnector::from(tls.config()).connect(name, raw);
        match timeout(limit, handshake).await {
            Ok(Ok(stream)) => Ok(Connection::tls(stream, remote, times.with_tls(start.elapsed()))),
            Ok(Err(error)) => Err(DialError::from_handshake(target, &error)),
            Err(_) => Err(DialError::TlsTimeout { target: target.clone(), after: limit }),
        }
    }

    async fn connect_raw(&self, target: &Target) -> Result<DialedConnection, DialError> {
        match &self.inner.egress {
            Some(egress) => {
                if let Some(ip) = target.ip() {
                    self.check_address(target, SocketAddr::new(ip, target.port))?;
                }
                let start = Instant::now();
                let raw = egress.dial(target, self.inner.options.dial_timeout).await?;
                Ok((raw, None, DialTimes::from_tcp(Duration::ZERO, start.elapsed())))
            }
            None => {
                let (stream, addr, times) = self.connect_tcp(target).await?;
                Ok((RawStream::Tcp(stream), Some(addr), times))
            }
        }
    }

    /// Tries the addresses one after another. If none works, returns the first refusal or error.
    async fn connect_tcp(&self, target: &Target) -> Result<(TcpStream, SocketAddr, DialTimes), DialError> {
        let limit = self.inner.options.dial_timeout;
        let start = Instant::now();
        let deadline = start + limit;
        let addrs = self.resolve(target, deadline).await?;
        let resolved = Instant::now();
        let timed_out = || DialError::DialTimeout { target: target.clone(), after: limit };
        let mut first_error = None;
        for (index, addr) in addrs.iter().enumerate() {
            let attempt = async {
                self.check_address(target, *addr)?;
                let remaining = deadline.saturating_duration_since(Instant::now());
                let share = remaining / u32::try_from(addrs.len() - index).unwrap_or(1).max(1);
                let stream = timeout(share, TcpStream::connect(addr)).await.map_err(|_| timed_out())?;
                let stream = stream.map_err(|source| DialError::Dial { addr: *addr, source })?;
                self.configure_socket(&stream).map_err(|source| DialError::Dial { addr: *addr, source })?;
                Ok((stream, *addr, DialTimes::from_tcp(resolved - start, resolved.elapsed())))
            };
            match attempt.await {
                Ok(connected) => return Ok(connected),
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        Err(first_error.unwrap_or_else(timed_out))
    }

    fn configure_socket(&self, stream: &TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        set_keepalive(stream, self.inner.options.keepalive)
    }

    fn check_address(&self, target: &Target, addr: SocketAddr) -> Result<(), DialError> {
        let refused = |refusal| DialError::Refused { target: target.clone(), refusal };
        self.inner.options.policy.check(addr).map_err(refused)
    }

    /// Resolves the addresses of a target without dialing.
    ///
    /// # Errors
    /// Returns an error if the name has no address, or if resolution does not finish before the deadline.
    pub async fn resolve(&self, target: &Target, deadline: Instant) -> Result<Vec<SocketAddr>, DialError> {
        if let Some(ip) = target.ip() {
            return Ok(vec![SocketAddr::new(ip, target.port)]);
        }
        let failed = |reason: String| DialError::Resolve { host: target.host.clone(), reason };
        let lookup = tokio::net::lookup_host((target.host.as_str(), target.port));
        let socket_addrs = match timeout_at(deadline, lookup).await {
            Ok(found) => found.map_err(|error| failed(io_reason(&error).to_owned()))?,
            Err(_) => return Err(failed("timed out".to_owned())),
        };
        let mut addrs: Vec<SocketAddr> = Vec::new();
        for addr in socket_addrs {
            if !addrs.contains(&addr) {
                addrs.push(addr);
            }
        }
        if addrs.is_empty() { Err(failed("the name has no address".to_owned())) } else { Ok(addrs) }
    }
}
