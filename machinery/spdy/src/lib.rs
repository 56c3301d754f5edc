//! Encoder and decoder of SPDY/3.1 frames, with which kubelets multiplex the streams of `exec`, `attach` and `portforward`.
//!
//! Only a codec: does not depend on sockets, tasks, clocks, or the purpose of streams. Callers track
//! streams. Flow control is not implemented, because the peer has none: `moby/spdystream`, which
//! every kubelet and container runtime uses, neither sends nor evaluates WINDOW_UPDATE.

mod compression;
mod decoder;
mod dictionary;
mod encoder;
mod error;
mod frame;
mod headers;

pub use decoder::{Decoder, DecoderLimits};
pub use encoder::Encoder;
pub use error::SpdyError;
pub use frame::{Frame, RstStatus, Setting};
pub use headers::Headers;
