//! The transport to one backend: its targets, their connections and circuits, its TLS settings, its limit.
//!
//! Shared by all routes that would reach the same backend in the same way. It must not know routes, users
//! or Status.

mod circuit;
mod clock;
mod exchange;
mod http1;
mod http1_body;
mod http2;
mod http2_body;
mod key;
mod registry;
mod send_error;
mod target;
mod trust;

pub use registry::{Transport, TransportError};

pub(crate) use exchange::{Answer, Carrier};
pub(crate) use http1::{Answered, Http1Error, Switched};
pub(crate) use http1_body::Http1Body;
pub(crate) use http2_body::Http2Body;
pub(crate) use key::{ClientCertificate, TransportKey};
pub(crate) use registry::{Permit, Shared, Transports};
pub(crate) use send_error::SendError;
