//! The transport to one backend: its targets, their connections and circuits, its TLS settings, its limit.
//!
//! Shared by all routes that would reach the same backend in the same way. It must not know routes, users
//! or Status.

mod circuit;
mod exchange;
mod http1;
mod http2;
mod key;
mod registry;
mod target;
mod trust;

pub use registry::{Transport, TransportError};

pub(crate) use exchange::{Answer, Carrier, SendError};
pub(crate) use http1::{Answered, Http1Body, Http1Error, Switched};
pub(crate) use http2::Http2Body;
pub(crate) use key::{ClientCertificate, TransportKey};
pub(crate) use registry::{Permit, Shared, Transports};

use std::sync::LazyLock;

use tokio::time::Instant;

/// Milliseconds on a clock that starts with the process: what fits an atomic.
fn now_ms() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
