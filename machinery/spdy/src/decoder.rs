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
const HEAD: usize = 8;

/// Limits on the memory that a peer can occupy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of a control frame in bytes.
    pub control_frame: usize,
    /// Size of the decompressed headers of a frame in bytes.
    pub headers_bytes: usize,
    /// Number of headers of a frame.
    pub headers: usize,
}

impl Default for Limits {
    /// Defaults: 16 KiB, 64 KiB and 64 headers. Frames of kubelets have a few short headers.
    fn default() -> Self {
        Self { control_frame: 16 << 10, headers_bytes: 64 << 10, headers: 64 }
    }
}

/// DATA frame that has not arrived completely.
struct Unfinished {
    stream: u32,
    fin: bool,
    left: usize,
}

/// Decoder of the frames of one direction of a connection. Must not be used after an error.
pub struct Decoder {
    limits: Limits,
    decompressor: Decompressor,
    data: Option<Unfinished>,
}

impl Decoder {
    /// Returns a decoder for a new connection.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, decompressor: Decompressor::new(), data: None }
    }

    /// True if the bytes so far end at the end of a frame.
    #[must_use]
    pub fn is_between_frames(&self, rest: &BytesMut) -> bool {
        self.data.is_none() && rest.is_empty()
    }

    /// Removes and returns the next frame, or the next part of a DATA frame, from the front of `bytes`. `None` if more bytes are
    /// needed. Control frames of unknown types are skipped, as the protocol requires.
    ///
    /// # Errors
    /// Returns an error for an invalid frame, or for a frame that exceeds the limits.
    pub fn decode(&mut self, bytes: &mut BytesMut) -> Result<Option<Frame>, SpdyError> {
        loop {
            if self.data.is_some() {
                return Ok(self.piece(bytes));
            }
            let Some((mut head, _)) = bytes.split_at_checked(HEAD) else { return Ok(None) };
            let (first, second) = (head.get_u32(), head.get_u32());
            let [flags, length @ ..] = second.to_be_bytes();
            let length = length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
            if first & !STREAM_MASK == 0 {
                bytes.advance(HEAD);
                self.data = Some(Unfinished { stream: stream(first)?, fin: flags & FIN != 0, left: length });
                if length == 0 {
                    return Ok(self.end_of_data(Bytes::new()));
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
            if bytes.len() < HEAD + length {
                return Ok(None);
            }
            bytes.advance(HEAD);
            let payload = bytes.split_to(length).freeze();
            let frame = self.control(u16::from_be_bytes([kind_high, kind_low]), flags, payload)?;
            if frame.is_some() {
                return Ok(frame);
            }
        }
    }

    /// Returns the available part of the current DATA frame.
    fn piece(&mut self, bytes: &mut BytesMut) -> Option<Frame> {
        let data = self.data.as_mut()?;
        if bytes.is_empty() {
            return None;
        }
        let piece = bytes.split_to(bytes.len().min(data.left)).freeze();
        data.left -= piece.len();
        if data.left == 0 {
            return self.end_of_data(piece);
        }
        Some(Frame::Data { stream: data.stream, fin: false, data: piece })
    }

    fn end_of_data(&mut self, piece: Bytes) -> Option<Frame> {
        let Unfinished { stream, fin, .. } = self.data.take()?;
        Some(Frame::Data { stream, fin, data: piece })
    }

    fn control(&mut self, kind: u16, flags: u8, mut payload: Bytes) -> Result<Option<Frame>, SpdyError> {
        let fin = flags & FIN != 0;
        let frame = match kind {
            kind::SYN_STREAM => {
                let (stream, associated) =
                    (stream(number(&mut payload)?)?, number(&mut payload)? & STREAM_MASK);
                let priority = payload.try_get_u16().map_err(short)?.to_be_bytes()[0] >> 5;
                let (unidirectional, headers) = (flags & UNIDIRECTIONAL != 0, self.headers(&payload)?);
                Frame::SynStream { stream, associated, priority, fin, unidirectional, headers }
            }
            kind::SYN_REPLY => Frame::SynReply {
                stream: stream(number(&mut payload)?)?,
                fin,
                headers: self.headers(&payload)?,
            },
            kind::HEADERS => Frame::Headers {
                stream: stream(number(&mut payload)?)?,
                fin,
                headers: self.headers(&payload)?,
            },
            kind::RST_STREAM => {
                let (stream, status) = pair(payload)?;
                Frame::RstStream { stream: self::stream(stream)?, status: RstStatus(status) }
            }
            kind::GOAWAY => {
                let (last_good, status) = pair(payload)?;
                Frame::GoAway { last_good: last_good & STREAM_MASK, status }
            }
            kind::WINDOW_UPDATE => {
                let (stream, delta) = pair(payload)?;
                Frame::WindowUpdate { stream: stream & STREAM_MASK, delta: delta & STREAM_MASK }
            }
            kind::PING => Frame::Ping(whole(payload)?),
            kind::SETTINGS => Frame::Settings(settings(payload)?),
            _ => return Ok(None),
        };
        Ok(Some(frame))
    }

    fn headers(&mut self, compressed: &Bytes) -> Result<Headers, SpdyError> {
        let block = self.decompressor.block(compressed, self.limits.headers_bytes)?;
        Headers::read(block.into(), self.limits.headers)
    }
}

fn short<E>(_: E) -> SpdyError {
    SpdyError::Malformed("a control frame that breaks off")
}

fn number(payload: &mut Bytes) -> Result<u32, SpdyError> {
    payload.try_get_u32().map_err(short)
}

/// Reads a number that must be the end of the payload.
fn whole(mut payload: Bytes) -> Result<u32, SpdyError> {
    let number = number(&mut payload)?;
    if payload.has_remaining() {
        Err(SpdyError::Malformed("a control frame that is too long"))
    } else {
        Ok(number)
    }
}

fn pair(mut payload: Bytes) -> Result<(u32, u32), SpdyError> {
    Ok((number(&mut payload)?, whole(payload)?))
}

/// Returns a stream ID, which must not be 0.
fn stream(number: u32) -> Result<u32, SpdyError> {
    let stream = number & STREAM_MASK;
    if stream == 0 { Err(SpdyError::Malformed("stream 0")) } else { Ok(stream) }
}

fn settings(mut payload: Bytes) -> Result<Vec<Setting>, SpdyError> {
    let count = number(&mut payload)?;
    if usize::try_from(count).ok().and_then(|count| count.checked_mul(8)) != Some(payload.len()) {
        return Err(SpdyError::Malformed("the number of settings does not match their count"));
    }
    let mut settings = Vec::new();
    while payload.has_remaining() {
        let (id, value) = (number(&mut payload)?, number(&mut payload)?);
        settings.push(Setting { flags: id.to_be_bytes()[0], id: id & 0x00ff_ffff, value });
    }
    Ok(settings)
}

#[cfg(test)]
mod tests;
