//! Frames of SPDY/3.1.

use bytes::Bytes;

use crate::headers::Headers;

/// Frame, or a part of a DATA frame: see [`crate::Decoder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Opens a stream.
    SynStream {
        /// ID of the stream: odd for streams of the client, even for those of the server.
        stream: u32,
        /// ID of the associated stream, or 0.
        associated: u32,
        /// Priority from 0 (highest) to 7 (lowest).
        priority: u8,
        /// True if the sender sends no further data on the stream.
        fin: bool,
        /// True if the receiver must not send data on the stream.
        unidirectional: bool,
        /// Headers that describe the stream.
        headers: Headers,
    },
    /// Accepts a stream.
    SynReply {
        /// ID of the stream.
        stream: u32,
        /// True if the sender sends no data on the stream.
        fin: bool,
        /// Headers, usually empty.
        headers: Headers,
    },
    /// Ends a stream in both directions.
    RstStream {
        /// ID of the stream.
        stream: u32,
        /// Reason of the reset.
        status: RstStatus,
    },
    /// Requests settings. Kubelets and proxies ignore them.
    Settings(Vec<Setting>),
    /// Ping with a number. The receiver sends it back if the number has the parity of the sender.
    Ping(u32),
    /// Announces that the sender accepts no more streams.
    GoAway {
        /// ID of the last accepted stream.
        last_good: u32,
        /// Reason; 0 means normal shutdown.
        status: u32,
    },
    /// Adds headers to a stream.
    Headers {
        /// ID of the stream.
        stream: u32,
        /// True if the sender sends no further data on the stream.
        fin: bool,
        /// Additional headers.
        headers: Headers,
    },
    /// Allows the receiver to send more bytes on a stream.
    WindowUpdate {
        /// ID of the stream, or 0 for the connection.
        stream: u32,
        /// Number of additional bytes.
        delta: u32,
    },
    /// Transfers data of a stream.
    Data {
        /// ID of the stream.
        stream: u32,
        /// True if the sender sends no further data on the stream.
        fin: bool,
        /// Data, possibly a part of the frame.
        data: Bytes,
    },
}

/// Reason why a stream was reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RstStatus(pub u32);

impl RstStatus {
    /// The frame is not valid at this time.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// The stream is not accepted.
    pub const REFUSED_STREAM: Self = Self(3);
    /// The stream is no longer needed.
    pub const CANCEL: Self = Self(5);
}

/// Entry of a SETTINGS frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Flags: 1 asks the receiver to store the value, 2 marks a stored value.
    pub flags: u8,
    /// ID of the setting, of 24 bits.
    pub id: u32,
    /// Value of the setting.
    pub value: u32,
}

/// Type numbers of control frames.
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

/// Version in control frames: 3.1 differs from 3 in its rules, but not in its frames.
pub(crate) const VERSION: u16 = 3;
/// Flag: the sender sends no further data on the stream.
pub(crate) const FIN: u8 = 1;
/// Flag: the receiver must not send data on the stream.
pub(crate) const UNIDIRECTIONAL: u8 = 2;
/// Mask of a stream ID, which has 31 bits.
pub(crate) const STREAM_MASK: u32 = 0x7fff_ffff;
/// Maximum length of a frame, which has 24 bits.
pub(crate) const MAX_LENGTH: usize = 0x00ff_ffff;
