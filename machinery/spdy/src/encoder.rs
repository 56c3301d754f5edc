//! Encoder of frames.

use bytes::{BufMut, BytesMut};

use crate::compression::Compressor;
use crate::error::SpdyError;
use crate::frame::{FIN, Frame, MAX_LENGTH, STREAM_MASK, UNIDIRECTIONAL, VERSION, kind};
use crate::headers::Headers;

/// Encoder of the frames of one direction of a connection.
pub struct Encoder {
    compressor: Compressor,
}

impl Encoder {
    /// Returns an encoder for a new connection.
    ///
    /// # Errors
    /// Returns an error if the compressor cannot be created.
    pub fn new() -> Result<Self, SpdyError> {
        Ok(Self { compressor: Compressor::new()? })
    }

    /// Appends a frame to `out`.
    ///
    /// # Errors
    /// Returns an error for a frame longer than 16 MiB, or if headers cannot be compressed.
    pub fn encode(&mut self, frame: &Frame, out: &mut BytesMut) -> Result<(), SpdyError> {
        let mut payload = Vec::new();
        let (kind, flags) = match frame {
            Frame::Data { stream, fin, data } => {
                let length = checked_length(data.len())?;
                out.put_u32(stream & STREAM_MASK);
                out.put_u32(u32::from(if *fin { FIN } else { 0 }) << 24 | length);
                out.put_slice(data);
                return Ok(());
            }
            Frame::SynStream { stream, associated, priority, fin, unidirectional, headers } => {
                payload.put_u32(stream & STREAM_MASK);
                payload.put_u32(associated & STREAM_MASK);
                payload.put_u16(u16::from(*priority) << 13);
                self.encode_headers(headers, &mut payload)?;
                let one_way = if *unidirectional { UNIDIRECTIONAL } else { 0 };
                (kind::SYN_STREAM, one_way | fin_flag(*fin))
            }
            Frame::SynReply { stream, fin, headers } => {
                payload.put_u32(stream & STREAM_MASK);
                self.encode_headers(headers, &mut payload)?;
                (kind::SYN_REPLY, fin_flag(*fin))
            }
            Frame::Headers { stream, fin, headers } => {
                payload.put_u32(stream & STREAM_MASK);
                self.encode_headers(headers, &mut payload)?;
                (kind::HEADERS, fin_flag(*fin))
            }
            Frame::RstStream { stream, status } => {
                (kind::RST_STREAM, put_stream_and_number(&mut payload, *stream, status.0))
            }
            Frame::GoAway { last_good, status } => {
                (kind::GOAWAY, put_stream_and_number(&mut payload, *last_good, *status))
            }
            Frame::WindowUpdate { stream, delta } => {
                (kind::WINDOW_UPDATE, put_stream_and_number(&mut payload, *stream, delta & STREAM_MASK))
            }
            Frame::Ping(id) => {
                payload.put_u32(*id);
                (kind::PING, 0)
            }
            Frame::Settings(settings) => {
                payload.put_u32(checked_length(settings.len())?);
                for setting in settings {
                    payload.put_u8(setting.flags);
                    payload.put_uint(u64::from(setting.id), 3);
                    payload.put_u32(setting.value);
                }
                (kind::SETTINGS, 0)
            }
        };
        let length = checked_length(payload.len())?;
        out.put_u16(0x8000 | VERSION);
        out.put_u16(kind);
        out.put_u32(u32::from(flags) << 24 | length);
        out.put_slice(&payload);
        Ok(())
    }

    fn encode_headers(&mut self, headers: &Headers, payload: &mut Vec<u8>) -> Result<(), SpdyError> {
        payload.extend(self.compressor.compress_block(&headers.encode())?);
        Ok(())
    }
}

fn fin_flag(fin: bool) -> u8 {
    if fin { FIN } else { 0 }
}

/// Writes the payload of a frame that consists of a stream ID and a number. Returns its flags, which are always 0.
fn put_stream_and_number(payload: &mut Vec<u8>, stream: u32, number: u32) -> u8 {
    payload.put_u32(stream & STREAM_MASK);
    payload.put_u32(number);
    0
}

fn checked_length(bytes: usize) -> Result<u32, SpdyError> {
    u32::try_from(bytes).ok().filter(|_| bytes <= MAX_LENGTH).ok_or(SpdyError::TooLarge)
}
