//! Protobuf as the Kubernetes API writes it: the wire format, and the envelope that says what is inside.
//!
//! Knows no message by its fields but the envelope; those of objects are the schema engine's.

mod envelope;
mod reader;
mod writer;

pub use envelope::{Envelope, EnvelopeError, envelope_head, open, seal, seal_event};
pub use reader::{Reader, Scalar, WireError};
pub use writer::{Writer, field_length};

/// How a document begins that carries its kind.
pub const PREFIX: [u8; 4] = *b"k8s\0";

/// What follows the content of an envelope: empty content encoding and content type.
pub const ENVELOPE_TAIL: [u8; 4] = [0x1a, 0, 0x22, 0];
