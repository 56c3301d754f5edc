//! The frames of SPDY/3.1.

use bytes::Bytes;

use crate::headers::Headers;

/// A frame. Of a DATA frame it may be a part: see [`crate::Decoder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Opens a stream.
    SynStream {
        /// Odd for the client's, even for the server's.
        stream: u32,
        /// The stream that it belongs to; 0 for none.
        associated: u32,
        /// 0 is the most urgent, 7 the least.
        priority: u8,
        /// The sender sends nothing more on it.
        fin: bool,
        /// The other side must not send on it.
        unidirectional: bool,
        /// Which stream it is.
        headers: Headers,
    },
    /// Accepts a stream.
    SynReply {
        /// Of the other side.
        stream: u32,
        /// The sender sends nothing on it.
        fin: bool,
        /// Mostly none.
        headers: Headers,
    },
    /// Ends a stream in both directions.
    RstStream {
        /// Which.
        stream: u32,
        /// Why.
        status: RstStatus,
    },
    /// What the sender would like; nobody on the way to a kubelet heeds it.
    Settings(Vec<Setting>),
    /// Whoever gets one of the other side's parity sends it back.
    Ping(u32),
    /// The sender accepts no more streams.
    GoAway {
        /// The last one that it accepted.
        last_good: u32,
        /// 0 is the usual end.
        status: u32,
    },
    /// More headers of a stream.
    Headers {
        /// Which.
        stream: u32,
        /// The sender sends nothing more on it.
        fin: bool,
        /// Them.
        headers: Headers,
    },
    /// The sender takes more bytes of a stream.
    WindowUpdate {
        /// Which; 0 is the connection.
        stream: u32,
        /// How many.
        delta: u32,
    },
    /// Bytes of a stream.
    Data {
        /// Which.
        stream: u32,
        /// The sender sends nothing more on it.
        fin: bool,
        /// Them.
        data: Bytes,
    },
}

/// Why a stream was reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RstStatus(pub u32);

impl RstStatus {
    /// The frame makes no sense at this time.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// The stream is not accepted.
    pub const REFUSED_STREAM: Self = Self(3);
    /// The stream is not needed any more.
    pub const CANCEL: Self = Self(5);
}

/// One entry of a SETTINGS frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// 1: keep it, 2: it was kept.
    pub flags: u8,
    /// 24 bits.
    pub id: u32,
    /// What it is to be.
    pub value: u32,
}

/// The types of control frames, as they stand on the wire.
pub(crate) mod kind {
    pub(crate) const SYN_STREAM: u16 = 1;
    pub(crate) const SYN_REPLY: u16 = 2;
    pub(crate) const RST_STREAM: u16 = 3;
    pub(crate) const SETTINGS: u16 = 4;
    pub(crate) const PING: u16 = 6;
    pub(crate) const GOAWAY: u16 = 7;
    pub(crate) const HEADERS: u16 = 8;
    pub(crate) const WINDOW_UPDATE: u16 = 9;
}

/// The version in control frames: 3.1 differs from 3 in its rules, not in its frames.
pub(crate) const VERSION: u16 = 3;
/// The sender sends nothing more on the stream.
pub(crate) const FIN: u8 = 1;
/// The other side must not send on the stream.
pub(crate) const UNIDIRECTIONAL: u8 = 2;
/// Stream ids have 31 bits.
pub(crate) const STREAM_MASK: u32 = 0x7fff_ffff;
/// Lengths have 24 bits.
pub(crate) const MAX_LENGTH: usize = 0x00ff_ffff;
