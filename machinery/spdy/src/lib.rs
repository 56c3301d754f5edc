//! SPDY/3.1 frames as bytes and back: what kubelets multiplex the streams of `exec`, `attach` and `portforward` with.
//!
//! A codec and nothing else: it must not know sockets, tasks, clocks, or what streams are for. Whoever uses it keeps
//! account of streams. There is no flow control because there is none at the other end: `moby/spdystream`, which
//! every kubelet and container runtime uses, neither sends WINDOW_UPDATE nor heeds it.

mod compression;
mod decoder;
mod dictionary;
mod encoder;
mod error;
mod frame;
mod headers;

pub use decoder::{Decoder, Limits};
pub use encoder::Encoder;
pub use error::SpdyError;
pub use frame::{Frame, RstStatus, Setting};
pub use headers::Headers;
