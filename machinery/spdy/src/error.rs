//! What is wrong with bytes that should be SPDY/3.1. After any of these the connection is of no use: the header
//! compression of both sides is one state over all frames.

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpdyError {
    /// A control frame of another version.
    #[error("unsupported SPDY version {0}")]
    Version(u16),
    /// A control frame, or the headers in it, are larger than [`crate::Limits`] allow.
    #[error("a frame or its headers are too large")]
    TooLarge,
    /// A frame whose content does not fit its type.
    #[error("malformed frame: {0}")]
    Malformed(&'static str),
    /// Headers that cannot be decompressed, or were compressed with another dictionary.
    #[error("cannot decompress headers")]
    Compression,
}
