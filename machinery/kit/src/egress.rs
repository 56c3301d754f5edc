//! Egress selector: decides which connections go through an HTTP CONNECT proxy.
//!
//! Parses and validates `--egress-selector-config-file`, and opens tunnels. Does not depend on
//! the data in a tunnel.

mod config;
mod connect;

pub use config::{EgressConfig, EgressError, Protocol, ProxyTls, Selection, Transport};
pub use connect::{EgressDialer, EgressMetrics};
