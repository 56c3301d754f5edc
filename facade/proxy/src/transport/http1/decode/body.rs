//! Where a body ends: after so many bytes, after the last chunk, or with the connection.

use bytes::{Buf, Bytes, BytesMut};
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::{MAX_HEAD, MAX_HEADERS, Malformed, Scan};

/// A chunk's size line, extensions included; more is an error.
const MAX_SIZE_LINE: usize = 4096;
/// Pieces up to here are copied out, so that the connection's buffer stays; larger ones take the buffer along.
const COPY: usize = 4096;

/// What is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decoder {
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked(Chunk),
    /// Whatever comes until the connection ends.
    UntilClose,
}

/// Where in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    Size,
    Data(u64),
    /// The line end after a chunk's data.
    End,
    Trailers(Scan),
    Done,
}

/// What the buffer's front holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// More bytes are needed.
    More,
    Data(Bytes),
    Trailers(HeaderMap),
    End,
}

impl Decoder {
    pub(super) fn chunked() -> Self {
        Self::Chunked(Chunk::Size)
    }

    /// Whether nothing more is to come.
    pub(crate) fn is_done(self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunk::Done))
    }

    /// Takes the next piece off the buffer's front.
    pub(crate) fn decode(&mut self, buffer: &mut BytesMut) -> Result<Decoded, Malformed> {
        match self {
            Self::Length(0) => Ok(Decoded::End),
            Self::Length(left) => Ok(data(buffer, left)),
            Self::UntilClose => {
                let mut endless = u64::MAX;
                Ok(data(buffer, &mut endless))
            }
            Self::Chunked(chunk) => chunk.decode(buffer),
        }
    }
}

impl Chunk {
    fn decode(&mut self, buffer: &mut BytesMut) -> Result<Decoded, Malformed> {
        loop {
            *self = match self {
                Self::Size => match size(buffer)? {
                    None => return Ok(Decoded::More),
                    Some(0) => Self::Trailers(Scan::default()),
                    Some(size) => Self::Data(size),
                },
                Self::Data(0) => Self::End,
                Self::Data(left) => {
                    let data = data(buffer, left);
                    if *left == 0 {
                        *self = Self::End;
                    }
                    return Ok(data);
                }
                Self::End => match buffer.as_ref() {
                    [b'\r', b'\n', ..] => {
                        buffer.advance(2);
                        Self::Size
                    }
                    [] | [b'\r'] => return Ok(Decoded::More),
                    _ => return Err(Malformed::Chunk),
                },
                Self::Trailers(scan) => {
                    let Some(trailers) = trailers(buffer, scan)? else { return Ok(Decoded::More) };
                    *self = Self::Done;
                    return Ok(if trailers.is_empty() { Decoded::End } else { Decoded::Trailers(trailers) });
                }
                Self::Done => return Ok(Decoded::End),
            };
        }
    }
}

fn data(buffer: &mut BytesMut, left: &mut u64) -> Decoded {
    if buffer.is_empty() {
        return Decoded::More;
    }
    let length = usize::try_from(*left).map_or(buffer.len(), |left| left.min(buffer.len()));
    *left -= length as u64;
    Decoded::Data(if buffer.len() <= COPY {
        let data = Bytes::copy_from_slice(&buffer[..length]);
        buffer.advance(length);
        data
    } else {
        buffer.split_to(length).freeze()
    })
}

/// A chunk's size in hexadecimal digits; extensions are skipped.
fn size(buffer: &mut BytesMut) -> Result<Option<u64>, Malformed> {
    let Some(end) = buffer.iter().position(|byte| *byte == b'\n') else {
        return if buffer.len() > MAX_SIZE_LINE { Err(Malformed::Chunk) } else { Ok(None) };
    };
    let line = buffer[..end].strip_suffix(b"\r").ok_or(Malformed::Chunk)?;
    if end > MAX_SIZE_LINE || line.contains(&b'\r') {
        return Err(Malformed::Chunk);
    }
    let digits = line.split(|byte| matches!(byte, b';' | b' ' | b'\t')).next().unwrap_or_default();
    if digits.is_empty() || digits.len() > 15 {
        return Err(Malformed::Chunk);
    }
    let mut size = 0;
    for digit in digits {
        let digit = char::from(*digit).to_digit(16).ok_or(Malformed::Chunk)?;
        size = size * 16 + u64::from(digit);
    }
    buffer.advance(end + 1);
    Ok(Some(size))
}

/// Header lines up to an empty one.
fn trailers(buffer: &mut BytesMut, scan: &mut Scan) -> Result<Option<HeaderMap>, Malformed> {
    if !scan.is_due(buffer) {
        return if buffer.len() > MAX_HEAD { Err(Malformed::TooLarge) } else { Ok(None) };
    }
    let mut storage = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let (length, parsed) = match httparse::parse_headers(buffer, &mut storage)? {
        httparse::Status::Complete(complete) => complete,
        httparse::Status::Partial if buffer.len() > MAX_HEAD => return Err(Malformed::TooLarge),
        httparse::Status::Partial => {
            scan.is_partial(buffer);
            return Ok(None);
        }
    };
    let mut trailers = HeaderMap::with_capacity(parsed.len());
    for header in parsed {
        let name =
            HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| Malformed::Header("trailer"))?;
        let value = HeaderValue::from_bytes(header.value).map_err(|_| Malformed::Header("trailer"))?;
        trailers.append(name, value);
    }
    buffer.advance(length);
    Ok(Some(trailers))
}
