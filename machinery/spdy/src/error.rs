//! Errors of decoding SPDY/3.1. After an error the connection cannot be used any more, because the header
//! compression of both sides is one state over all frames.

/// Error of decoding or encoding a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpdyError {
    /// The control frame has another version.
    #[error("unsupported SPDY version {0}")]
    Version(u16),
    /// The control frame or its headers exceed [`crate::DecoderLimits`].
    #[error("a frame or its headers are too large")]
    TooLarge,
    /// The content of the frame does not match its type.
    #[error("malformed frame: {0}")]
    Malformed(&'static str),
    /// The headers cannot be decompressed, or were compressed with another dictionary.
    #[error("cannot decompress headers")]
    Compression,
}
