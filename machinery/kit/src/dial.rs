//! Dialing a backend: resolve, check the address rules, connect, TLS. Each failure
//! names its stage.
//!
//! The proxy and the availability probes share this code, so that a probe sees what a request would see. Does
//! not depend on HTTP nor on the purpose of a connection.

mod connect;
mod connection;
mod error;
mod policy;
mod reason;
mod service;

pub use connect::{Connector, ConnectorOptions};
pub(crate) use connection::RawStream;
pub use connection::{Connection, DialTimes, NegotiatedAlpn};
pub use error::{DialError, DialStage};
pub use policy::{AddressPolicy, Refusal};
pub(crate) use reason::{HandshakeFailure, handshake_failure};
pub use reason::{
    client_handshake_reason, client_http_reason, find_cause, http_reason, io_reason, source_reason,
};
pub use service::BackendConnector;

use std::fmt;
use std::net::IpAddr;

/// Host (name or address, without brackets) and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    /// DNS name or IP address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl Target {
    /// Returns a target. Brackets around an IPv6 address are removed.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        let host: String = host.into();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        Self { host: bare.map_or(host.clone(), str::to_owned), port }
    }

    /// Returns the host as an address, if it is one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

impl fmt::Display for Target {
    /// Writes `host:port`, with an IPv6 address in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests;
