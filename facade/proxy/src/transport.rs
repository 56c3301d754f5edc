//! The transport to one backend: its targets, their connections and circuits, its TLS settings, its limit.
//!
//! Shared by all routes that would reach the same backend in the same way. It must not know routes, users
//! or Status.

mod answer_body;
mod exchange;
mod http1;
mod http2;
mod key;
mod registry;
mod repeat;
mod send_error;
mod target;
mod trust;
mod turns;
mod upload;

pub use registry::{Transport, TransportError};

pub(crate) use answer_body::{AnswerBody, Carrier};
pub(crate) use exchange::Answer;
pub(crate) use http1::{Answered, Http1Error};
pub(crate) use key::{ClientCertificate, TransportKey};
pub(crate) use registry::{Permit, Shared, Transports};
pub(crate) use send_error::SendError;
