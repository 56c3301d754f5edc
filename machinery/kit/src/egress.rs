//! The egress selector: which dials go through an HTTP CONNECT proxy, and how.
//!
//! `--egress-selector-config-file` is parsed and checked here, and tunnels are opened here. It must not know
//! what flows through a tunnel.

mod config;
mod connect;

pub use config::{EgressConfig, EgressError, Protocol, ProxyTls, Selection, Transport};
pub use connect::{EgressDialer, EgressMetrics};
