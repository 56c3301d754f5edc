//! Decoder of frames.
//!
//! Control frames are buffered completely, up to a limit. DATA frames are not: each part that has arrived is returned at once,
//! and the last part has the FIN flag of the frame, so that a frame of 16 MiB needs no more memory than the bytes read at once.

use bytes::{Buf, Bytes, BytesMut};

use crate::compression::Decompressor;
use crate::error::SpdyError;
use crate::frame::{FIN, Frame, RstStatus, STREAM_MASK, Setting, UNIDIRECTIONAL, VERSION, kind};
use crate::headers::Headers;

/// Length of the header of a frame.
const HEADER_BYTES: usize = 8;

/// Limits on the memory that a peer can occupy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderLimits {
    /// Size of a control frame in bytes.
    pub control_frame: usize,
    /// Size of the decompressed headers of a frame in bytes.
    pub headers_bytes: usize,
    /// Number of headers of a frame.
    pub headers: usize,
}

impl Default for DecoderLimits {
    /// Defaults: 16 KiB, 64 KiB and 64 headers. Frames of kubelets have a few short headers.
    fn default() -> Self {
        Self { control_frame: 16 << 10, headers_bytes: 64 << 10, headers: 64 }
    }
}

/// DATA frame that has not arrived completely.
struct PartialData {
    stream: u32,
    fin: bool,
    remaining: usize,
}

/// Decoder of the frames of one direction of a connection. Must not be used after an error.
pub struct Decoder {
    limits: DecoderLimits,
    decompressor: Decompressor,
    partial_data: Option<PartialData>,
}

impl Decoder {
    /// Returns a decoder for a new connection.
    #[must_use]
    pub fn new(limits: DecoderLimits) -> Self {
        Self { limits, decompressor: Decompressor::new(), partial_data: None }
    }

    /// True if the bytes so far end at the end of a frame.
    #[must_use]
    pub fn is_between_frames(&self, rest: &BytesMut) -> bool {
        self.partial_data.is_none() && rest.is_empty()
    }

    /// Removes and returns the next frame, or the next part of a DATA frame, from the front of `bytes`. `None` if more bytes are
    /// needed. Control frames of unknown types are skipped, as the protocol requires.
    ///
    /// # Errors
    /// Returns an error for an invalid frame, or for a frame that exceeds the limits.
    pub fn decode(&mut self, bytes: &mut BytesMut) -> Result<Option<Frame>, SpdyError> {
        loop {
            if self.partial_data.is_some() {
                return Ok(self.next_data_part(bytes));
            }
            let Some((mut head, _)) = bytes.split_at_checked(HEADER_BYTES) else { return Ok(None) };
            let (first, second) = (head.get_u32(), head.get_u32());
            let [flags, length @ ..] = second.to_be_bytes();
            let length = length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
            if first & !STREAM_MASK == 0 {
                bytes.advance(HEADER_BYTES);
                self.partial_data =
                    Some(PartialData { stream: stream_id(first)?, fin: flags & FIN != 0, remaining: length });
                if length == 0 {
                    return Ok(self.finish_data(Bytes::new()));
                }
                continue;
            }
            let [kind_high, kind_low] = [first.to_be_bytes()[2], first.to_be_bytes()[3]];
            let version = (first >> 16) & 0x7fff;
            if version != u32::from(VERSION) {
                return Err(SpdyError::Version(u16::try_from(version).unwrap_or_default()));
            }
            if length > self.limits.control_frame {
                return Err(SpdyError::TooLarge);
            }
            if bytes.len() < HEADER_BYTES + length {
                return Ok(None);
            }
            bytes.advance(HEADER_BYTES);
            let payload = bytes.split_to(length).freeze();
            let frame = self.decode_control(u16::from_be_bytes([kind_high, kind_low]), flags, payload)?;
            if frame.is_some() {
                return Ok(frame);
            }
        }
    }

    /// Returns the available part of the current DATA frame.
    fn next_data_part(&mut self, bytes: &mut BytesMut) -> Option<Frame> {
        let data = self.partial_data.as_mut()?;
        if bytes.is_empty() {
            return None;
        }
        let piece = bytes.split_to(bytes.len().min(data.remaining)).freeze();
        data.remaining -= piece.len();
        if data.remaining == 0 {
            return self.finish_data(piece);
        }
        Some(Frame::Data { stream: data.stream, fin: false, data: piece })
    }

    fn finish_data(&mut self, piece: Bytes) -> Option<Frame> {
        let PartialData { stream, fin, .. } = self.partial_data.take()?;
        Some(Frame::Data { stream, fin, data: piece })
    }

    fn decode_control(
        &mut self,
        kind: u16,
        flags: u8,
        mut payload: Bytes,
    ) -> Result<Option<Frame>, SpdyError> {
        let fin = flags & FIN != 0;
        let frame = match kind {
            kind::SYN_STREAM => {
                let (stream, associated) =
                    (stream_id(read_u32(&mut payload)?)?, read_u32(&mut payload)? & STREAM_MASK);
                let priority = payload.try_get_u16().map_err(truncated)?.to_be_bytes()[0] >> 5;
                let (unidirectional, headers) = (flags & UNIDIRECTIONAL != 0, self.decode_headers(&payload)?);
                Frame::SynStream { stream, associated, priority, fin, unidirectional, headers }
            }
            kind::SYN_REPLY => Frame::SynReply {
                stream: stream_id(read_u32(&mut payload)?)?,
                fin,
                headers: self.decode_headers(&payload)?,
            },
            kind::HEADERS => Frame::Headers {
                stream: stream_id(read_u32(&mut payload)?)?,
                fin,
                headers: self.decode_headers(&payload)?,
            },
            kind::RST_STREAM => {
                let (stream, status) = read_u32_pair(payload)?;
                Frame::RstStream { stream: self::stream_id(stream)?, status: RstStatus(status) }
            }
            kind::GOAWAY => {
                let (last_good, status) = read_u32_pair(payload)?;
                Frame::GoAway { last_good: last_good & STREAM_MASK, status }
            }
            kind::WINDOW_UPDATE => {
                let (stream, delta) = read_u32_pair(payload)?;
                Frame::WindowUpdate { stream: stream & STREAM_MASK, delta: delta & STREAM_MASK }
            }
            kind::PING => Frame::Ping(read_last_u32(payload)?),
            kind::SETTINGS => Frame::Settings(read_settings(payload)?),
            _ => return Ok(None),
        };
        Ok(Some(frame))
    }

    fn decode_headers(&mut self, compressed: &Bytes) -> Result<Headers, SpdyError> {
        let block = self.decompressor.decompress_block(compressed, self.limits.headers_bytes)?;
        Headers::decode(block.into(), self.limits.headers)
    }
}

fn truncated<E>(_: E) -> SpdyError {
    SpdyError::Malformed("truncated control frame")
}

fn read_u32(payload: &mut Bytes) -> Result<u32, SpdyError> {
    payload.try_get_u32().map_err(truncated)
}

/// Reads a number that must be the end of the payload.
fn read_last_u32(mut payload: Bytes) -> Result<u32, SpdyError> {
    let number = read_u32(&mut payload)?;
    if payload.has_remaining() {
        Err(SpdyError::Malformed("control frame with trailing bytes"))
    } else {
        Ok(number)
    }
}

fn read_u32_pair(mut payload: Bytes) -> Result<(u32, u32), SpdyError> {
    Ok((read_u32(&mut payload)?, read_last_u32(payload)?))
}

/// Returns a stream ID, which must not be 0.
fn stream_id(number: u32) -> Result<u32, SpdyError> {
    let stream = number & STREAM_MASK;
    if stream == 0 { Err(SpdyError::Malformed("stream 0")) } else { Ok(stream) }
}

fn read_settings(mut payload: Bytes) -> Result<Vec<Setting>, SpdyError> {
    let count = read_u32(&mut payload)?;
    if usize::try_from(count).ok().and_then(|count| count.checked_mul(8)) != Some(payload.len()) {
        return Err(SpdyError::Malformed("the length does not match the number of settings"));
    }
    let mut settings = Vec::new();
    while payload.has_remaining() {
        let (id, value) = (read_u32(&mut payload)?, read_u32(&mut payload)?);
        settings.push(Setting { flags: id.to_be_bytes()[0], id: id & 0x00ff_ffff, value });
    }
    Ok(settings)
}

#[cfg(test)]
mod tests;
