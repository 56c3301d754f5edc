//! Protobuf in the format of the Kubernetes API: the wire format, and the envelope that contains the kind.
//!
//! The only message defined here is the envelope; the schema engine encodes objects.

mod envelope;
mod reader;
mod writer;

pub use envelope::{Envelope, EnvelopeError, decode_envelope, encode_envelope, encode_event, envelope_head};
pub use reader::{Reader, WireError, WireValue};
pub use writer::{Writer, field_length};

/// Prefix of an enveloped document.
pub const PREFIX: [u8; 4] = *b"k8s\0";

/// Bytes after the content of an envelope: empty content encoding and content type.
pub const ENVELOPE_TAIL: [u8; 4] = [0x1a, 0, 0x22, 0];
