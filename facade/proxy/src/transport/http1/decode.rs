//! An answer from bytes: its head and its body's framing, by RFC 9112. Pure.
//!
//! What comes is foreign: anything ambiguous about where an answer ends is an error, because the rest would be
//! taken for the next caller's answer.

mod body;

pub(crate) use body::Decoded;
pub(crate) use body::Decoder;

use std::mem::MaybeUninit;

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{Response, StatusCode};

/// Bytes of a head, or of trailers; more is an error.
pub(super) const MAX_HEAD: usize = 1 << 20;
const MAX_HEADERS: usize = 100;
/// Capacity for what the layers in front add for the client: `Cache-Control`, `Audit-ID`, and one or the other.
const ADDED: usize = 4;

/// What came is not HTTP/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the answer is not HTTP/1: {}", reason(.0))]
    Head(#[from] httparse::Error),
    #[error("the answer's head is larger than {MAX_HEAD} bytes")]
    TooLarge,
    #[error("the answer's {0} is not valid")]
    Header(&'static str),
    #[error("the answer's body is not chunked as it should be")]
    Chunk,
}

/// What is not as HTTP/1 wants it.
fn reason(error: &httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName => "a header's name is not valid",
        httparse::Error::HeaderValue => "a header's value is not valid",
        httparse::Error::NewLine => "a line does not end as it should",
        httparse::Error::Status => "its status is not valid",
        httparse::Error::Token => "its first line is not valid",
        httparse::Error::TooManyHeaders => "it has too many headers",
        httparse::Error::Version => "it begins with no version of HTTP",
    }
}

/// A head, how its body ends, and whether the connection may be used again.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) response: Response<()>,
    pub(super) body: Decoder,
    pub(super) keep_alive: bool,
}

/// Takes heads off a buffer as bytes come. Each byte is looked at a bounded number of times, however slowly it comes.
#[derive(Debug, Default)]
pub(super) struct HeadDecoder {
    scan: Scan,
    /// Bytes of what came before the head: empty lines and informational answers.
    skipped: usize,
}

/// How far an incomplete head, or trailers, have been looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// Up to here there is no empty line.
    seen: usize,
    /// With so many bytes it is parsed again in any case: what is not HTTP is refused early.
    parse_at: usize,
}

#[cfg(test)]
thread_local! {
    /// Bytes that were looked at, each time that they were.
    static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Only tests count.
fn count_looks(_bytes: usize) {
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + _bytes);
}

impl Scan {
    /// Whether parsing may give a new result: there is an empty line, or twice as much as the last time.
    pub(super) fn is_due(&mut self, buffer: &[u8]) -> bool {
        if buffer.len() >= self.parse_at {
            return true;
        }
        let new = &buffer[self.seen.min(buffer.len())..];
        count_looks(new.len());
        let found = new.windows(2).any(|pair| pair == b"\n\n") || new.windows(3).any(|end| end == b"\n\r\n");
        if !found {
            self.seen = buffer.len().saturating_sub(2);
        }
        found
    }

    /// It was parsed, and is not complete.
    pub(super) fn is_partial(&mut self, buffer: &[u8]) {
        count_looks(buffer.len());
        (self.seen, self.parse_at) = (buffer.len().saturating_sub(2), 2 * buffer.len());
    }
}

impl HeadDecoder {
    /// Takes a head off the buffer's front; nothing while it is incomplete. Informational answers are skipped.
    pub(super) fn decode(&mut self, buffer: &mut BytesMut, to_head: bool) -> Result<Option<Head>, Malformed> {
        loop {
            self.skip_empty_lines(buffer);
            if self.skipped > MAX_HEAD {
                return Err(Malformed::TooLarge);
            }
            if buffer.is_empty() || !self.scan.is_due(buffer) {
                return if buffer.len() > MAX_HEAD { Err(Malformed::TooLarge) } else { Ok(None) };
            }
            match parse(buffer, to_head)? {
                Parsed::Partial if buffer.len() > MAX_HEAD => return Err(Malformed::TooLarge),
                Parsed::Partial => {
                    self.scan.is_partial(buffer);
                    return Ok(None);
                }
                Parsed::Informational(length) => {
                    buffer.advance(length);
                    (self.skipped, self.scan) = (self.skipped + length, Scan::default());
                }
                Parsed::Head(head) => return Ok(Some(head)),
            }
        }
    }

    /// Before a head they mean nothing; after it, one of them is its end.
    fn skip_empty_lines(&mut self, buffer: &mut BytesMut) {
        let blank = buffer.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        // A line that begins with a lone carriage return is for the parser to refuse.
        let lines = buffer[..blank].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if lines > 0 {
            buffer.advance(lines);
            (self.skipped, self.scan) = (self.skipped + lines, Scan::default());
        }
    }
}

enum Parsed {
    Partial,
    /// So long, and not the answer yet.
    Informational(usize),
    /// Taken off the buffer.
    Head(Head),
}

fn parse(buffer: &mut BytesMut, to_head: bool) -> Result<Parsed, Malformed> {
    let mut storage = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let httparse::Status::Complete(length) =
        config.parse_response_with_uninit_headers(&mut parsed, buffer, &mut storage)?
    else {
        return Ok(Parsed::Partial);
    };
    let status =
        StatusCode::from_u16(parsed.code.unwrap_or_default()).map_err(|_| Malformed::Header("status"))?;
    if status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(Parsed::Informational(length));
    }
    let old = parsed.version == Some(0);
    let headers = header_map(buffer, length, parsed.headers)?;
    buffer.advance(length);
    let body = framing(status, &headers, to_head, old)?;
    let keep_alive = keeps_alive(&headers, old) && !matches!(body, Decoder::UntilClose);
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(Parsed::Head(Head { response, body, keep_alive }))
}

/// The values share one copy of the head, so that the buffer itself can be used again.
fn header_map(buffer: &[u8], length: usize, parsed: &[httparse::Header<'_>]) -> Result<HeaderMap, Malformed> {
    let raw = Bytes::copy_from_slice(&buffer[..length]);
    let start = buffer.as_ptr() as usize;
    let mut headers = HeaderMap::with_capacity(parsed.len() + ADDED);
    for header in parsed {
        let name =
            HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| Malformed::Header("header name"))?;
        let at = header.value.as_ptr() as usize - start;
        let value = raw.slice(at..at + header.value.len());
        let value = HeaderValue::from_maybe_shared(value).map_err(|_| Malformed::Header("header value"))?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// RFC 9112, 6.3. `Transfer-Encoding` beats `Content-Length`, and both together come from nobody honest.
fn framing(status: StatusCode, headers: &HeaderMap, to_head: bool, old: bool) -> Result<Decoder, Malformed> {
    let without = matches!(status.as_u16(), 101 | 204 | 304);
    if to_head || without {
        return Ok(Decoder::Length(0));
    }
    if headers.contains_key(TRANSFER_ENCODING) {
        let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
        let chunked = codings.next().is_some_and(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
        if old || !chunked || codings.next().is_some() || headers.contains_key(CONTENT_LENGTH) {
            return Err(Malformed::Header("transfer-encoding"));
        }
        return Ok(Decoder::chunked());
    }
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        let this = digits(value.as_bytes()).ok_or(Malformed::Header("content-length"))?;
        if length.is_some_and(|length| length != this) {
            return Err(Malformed::Header("content-length"));
        }
        length = Some(this);
    }
    Ok(length.map_or(Decoder::UntilClose, Decoder::Length))
}

/// Digits and nothing else: no sign, no space, no list.
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn keeps_alive(headers: &HeaderMap, old: bool) -> bool {
    let values = headers.get_all(CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    let (mut close, mut keep_alive) = (false, false);
    for token in values.flat_map(|value| value.split(',')).map(str::trim) {
        close |= token.eq_ignore_ascii_case("close");
        keep_alive |= token.eq_ignore_ascii_case("keep-alive");
    }
    !close && (!old || keep_alive)
}

#[cfg(test)]
mod tests;
