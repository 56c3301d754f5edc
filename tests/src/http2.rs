//! HTTP/2 frames encoded by hand, for sequences that no library would send.

use std::time::Duration;

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::http::{Http, HttpError};

/// Frame type DATA (RFC 9113, section 6).
pub const DATA: u8 = 0;
/// Frame type HEADERS.
pub const HEADERS: u8 = 1;
/// Frame type PRIORITY.
pub const PRIORITY: u8 = 2;
/// Frame type RST_STREAM.
pub const RST_STREAM: u8 = 3;
/// Frame type SETTINGS.
pub const SETTINGS: u8 = 4;
/// Frame type PING.
pub const PING: u8 = 6;
/// Frame type GOAWAY.
pub const GOAWAY: u8 = 7;
/// Frame type WINDOW_UPDATE.
pub const WINDOW_UPDATE: u8 = 8;
/// Frame type CONTINUATION.
pub const CONTINUATION: u8 = 9;

/// Flag of the last frame of a stream.
pub const END_STREAM: u8 = 1;
/// Flag of the last frame of a head.
pub const END_HEADERS: u8 = 4;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADER_SIZE: usize = 9;

/// Encodes one frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.put_u32(stream);
    frame.extend_from_slice(payload);
    frame
}

/// Encodes a header that is not added to the table (RFC 7541, section 6.2.2); name and value are shorter than 127 bytes.
pub fn literal(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).ok().filter(|n| *n < 127).expect("a short text");
    let mut header = vec![0, length(name)];
    header.extend_from_slice(name.as_bytes());
    header.push(length(value));
    header.extend_from_slice(value.as_bytes());
    header
}

/// Encodes the head of a request without credentials.
pub fn head(method: &str, path: &str) -> Vec<u8> {
    let pairs = [(":method", method), (":scheme", "https"), (":authority", "portico"), (":path", path)];
    pairs.into_iter().flat_map(|(name, value)| literal(name, value)).collect()
}

/// A frame that the server sent.
#[derive(Debug)]
pub struct ReceivedFrame {
    /// Frame type.
    pub kind: u8,
    /// Frame flags.
    pub flags: u8,
    /// Stream of the frame.
    pub stream: u32,
    /// Payload of the frame.
    pub payload: Vec<u8>,
}

/// Reader of the server's frames.
pub struct FrameReader {
    stream: ReadHalf<TlsStream<TcpStream>>,
    read: BytesMut,
}

/// Sink of frames to the server.
pub type FrameSink = WriteHalf<TlsStream<TcpStream>>;

/// Opens a connection, and sends the preface and these settings (identifier and value).
pub async fn open(http: &Http, settings: &[(u16, u32)]) -> Result<(FrameReader, FrameSink), HttpError> {
    let (stream, mut sink) = tokio::io::split(http.offering(b"h2").dial().await?);
    let mut payload = Vec::new();
    for (identifier, value) in settings {
        payload.put_u16(*identifier);
        payload.put_u32(*value);
    }
    sink.write_all(PREFACE).await?;
    sink.write_all(&frame(SETTINGS, 0, 0, &payload)).await?;
    sink.flush().await?;
    Ok((FrameReader { stream, read: BytesMut::new() }, sink))
}

impl FrameReader {
    /// Returns the next frame; `None` at the end of the connection, including errors.
    pub async fn next(&mut self) -> Option<ReceivedFrame> {
        loop {
            if let Some(frame) = self.take() {
                return Some(frame);
            }
            match self.stream.read_buf(&mut self.read).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return None,
            }
        }
    }

    fn take(&mut self) -> Option<ReceivedFrame> {
        let [a, b, c, kind, flags, s0, s1, s2, s3] = *self.read.first_chunk::<HEADER_SIZE>()?;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        if self.read.len() < HEADER_SIZE + length {
            return None;
        }
        let frame = self.read.split_to(HEADER_SIZE + length);
        let stream = u32::from_be_bytes([s0, s1, s2, s3]);
        Some(ReceivedFrame { kind, flags, stream, payload: frame[HEADER_SIZE..].to_vec() })
    }

    /// Reads all frames until the server closes the connection.
    ///
    /// # Panics
    /// Panics if the connection stays open for longer than `patience`.
    pub async fn read_until_closed(mut self, timeout: Duration) -> Vec<ReceivedFrame> {
        let mut all = Vec::new();
        let end = async {
            while let Some(frame) = self.next().await {
                all.push(frame);
            }
        };
        assert!(tokio::time::timeout(timeout, end).await.is_ok(), "the connection stays open");
        all
    }
}
