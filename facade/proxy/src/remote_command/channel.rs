//! Messages of `v5.channel.k8s.io`.

use bytes::{BufMut, Bytes, BytesMut};
use tokio_tungstenite::tungstenite::Message;

pub(super) const STDIN: u8 = 0;
pub(super) const STDOUT: u8 = 1;
pub(super) const STDERR: u8 = 2;
pub(super) const ERROR: u8 = 3;
pub(super) const RESIZE: u8 = 4;
/// Number of channels.
const CHANNELS: u8 = 5;
/// Prefix of a message that closes a channel.
const CLOSE: u8 = 255;

/// A message from the client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClientMessage {
    /// Data for a channel.
    Data(u8, Bytes),
    /// The client sends no more data on this channel.
    Closed(u8),
    /// A message without effect.
    Ignored,
    /// The client disconnects, or violates the protocol.
    Disconnected,
}

impl ClientMessage {
    pub(super) fn of(message: Message) -> Self {
        let mut bytes = match message {
            Message::Binary(bytes) => bytes,
            Message::Text(text) => text.into(),
            Message::Close(_) => return Self::Disconnected,
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => return Self::Ignored,
        };
        match *bytes {
            [] => Self::Ignored,
            [CLOSE, channel] if channel < CHANNELS => Self::Closed(channel),
            [CLOSE, ..] => Self::Disconnected,
            [channel, _, ..] if channel < CHANNELS => Self::Data(channel, bytes.split_off(1)),
            [..] => Self::Ignored,
        }
    }
}

/// Encodes a message to the client.
pub(super) fn message(channel: u8, data: &[u8]) -> Message {
    let mut message = BytesMut::with_capacity(1 + data.len());
    message.put_u8(channel);
    message.put_slice(data);
    Message::Binary(message.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_upstream_reads_them() {
        let parsed = |bytes: &'static [u8]| ClientMessage::of(Message::Binary(Bytes::from_static(bytes)));
        assert_eq!(parsed(b"\0abc"), ClientMessage::Data(STDIN, Bytes::from_static(b"abc")));
        assert_eq!(parsed(b"\xff\0"), ClientMessage::Closed(STDIN));
        for ignored in [&b""[..], b"\0", b"\x05abc", b"\x99abc"] {
            assert_eq!(parsed(ignored), ClientMessage::Ignored, "{ignored:?}");
        }
        for invalid in [&b"\xff"[..], b"\xff\0\0", b"\xff\x05"] {
            assert_eq!(parsed(invalid), ClientMessage::Disconnected, "{invalid:?}");
        }
        assert_eq!(
            ClientMessage::of(Message::text("\0abc")),
            ClientMessage::Data(STDIN, Bytes::from_static(b"abc"))
        );
        assert_eq!(ClientMessage::of(Message::Ping(Bytes::new())), ClientMessage::Ignored);
        assert_eq!(message(STDERR, b"x"), Message::Binary(Bytes::from_static(b"\x02x")));
    }
}
