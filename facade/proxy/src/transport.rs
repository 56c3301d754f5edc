//! The transport to one backend: its targets, their connections and circuits, its TLS settings, its limit.
//!
//! Shared by all routes that reach the same backend in the same way. It does not depend on routes, users or Status.

mod answer_body;
mod choice;
mod dialling;
mod exchange;
mod http1;
mod http2;
mod key;
mod look;
mod open_connections;
mod order;
mod registry;
mod repeat;
mod send_error;
mod target;
mod trust;
mod turns;
mod upload;
mod usage;
mod usage_metrics;

pub use registry::{Transport, TransportError};

pub(crate) use answer_body::{AnswerBody, Carrier};
pub(crate) use exchange::{Answer, is_failure};
pub(crate) use http1::{Answered, Http1Error};
pub(crate) use key::{ClientCertificate, TransportKey};
pub(crate) use registry::{Permit, Shared, Transports};
pub(crate) use repeat::changes_nothing;
pub(crate) use send_error::SendError;
pub(crate) use usage_metrics::UsageMetrics;
