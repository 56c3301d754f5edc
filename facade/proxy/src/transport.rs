//! The transport to one backend: its targets, their connections and circuits, its TLS settings, its limit.
//!
//! Shared by all routes that reach the same backend in the same way. It does not depend on routes, users or Status.

mod dialing;
mod dry_run;
mod endpoint_trace;
mod exchange;
mod http1;
mod http2;
mod key;
mod open_connections;
mod registry;
mod response_body;
mod retry;
mod rotation;
mod send_error;
mod target;
mod target_order;
mod trust;
mod upload;
mod usage;
mod usage_metrics;

pub use registry::{Transport, TransportError};

pub(crate) use exchange::{BackendResponse, is_failure};
pub(crate) use http1::{Http1Error, Http1Response};
pub(crate) use key::{ClientCertificate, TransportKey};
pub(crate) use registry::{Permit, Shared, Transports};
pub(crate) use response_body::{Carrier, ResponseBody};
pub(crate) use retry::is_safe;
pub(crate) use send_error::SendError;
pub(crate) use usage_metrics::UsageMetrics;
