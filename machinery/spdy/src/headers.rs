//! Uncompressed header block: a number of pairs, each of a name and a value with their lengths.

use bytes::{Buf, BufMut, Bytes};

use crate::error::SpdyError;

/// Headers in order. A pair contains all values of one name, separated by zero bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(Bytes, Bytes)>);

impl Headers {
    /// Returns headers with one pair. The name must be lower-case.
    #[must_use]
    pub fn single(name: &'static str, value: &str) -> Self {
        Self(vec![(Bytes::from_static(name.as_bytes()), Bytes::copy_from_slice(value.as_bytes()))])
    }

    /// Returns the first value of this name, which must be lower-case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let (_, value) = self.0.iter().find(|(known, _)| known == name)?;
        value.split(|byte| *byte == 0).next()
    }

    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are no headers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut block = Vec::new();
        block.put_u32(length(self.0.len()));
        for (name, value) in &self.0 {
            for text in [name, value] {
                block.put_u32(length(text.len()));
                block.put_slice(text);
            }
        }
        block
    }

    /// Decodes a complete block of at most `max` names, which must be unique and lower-case.
    pub(crate) fn decode(mut block: Bytes, max: usize) -> Result<Self, SpdyError> {
        let count = read_length(&mut block)?;
        if count > max {
            return Err(SpdyError::TooLarge);
        }
        let mut headers = Self::default();
        for _ in 0..count {
            let (name, value) = (read_text(&mut block)?, read_text(&mut block)?);
            if name.is_empty() || name.iter().any(u8::is_ascii_uppercase) {
                return Err(SpdyError::Malformed("invalid header name"));
            }
            if headers.0.iter().any(|(known, _)| *known == name) {
                return Err(SpdyError::Malformed("duplicate header"));
            }
            headers.0.push((name, value));
        }
        if block.has_remaining() {
            return Err(SpdyError::Malformed("bytes after the headers"));
        }
        Ok(headers)
    }
}

/// Converts a length, which was decoded or is that of a short literal, to 32 bits.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn read_length(block: &mut Bytes) -> Result<usize, SpdyError> {
    let number = block.try_get_u32().map_err(|_| SpdyError::Malformed("truncated headers"))?;
    usize::try_from(number).map_err(|_| SpdyError::TooLarge)
}

fn read_text(block: &mut Bytes) -> Result<Bytes, SpdyError> {
    let length = read_length(block)?;
    if length > block.len() {
        return Err(SpdyError::Malformed("truncated headers"));
    }
    Ok(block.split_to(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_round_trips_and_invalid_blocks_are_refused() {
        let headers = Headers(vec![
            (Bytes::from_static(b"streamtype"), Bytes::from_static(b"stdin\0x")),
            (Bytes::from_static(b"port"), Bytes::new()),
        ]);
        let block = headers.encode();
        let read = Headers::decode(block.clone().into(), 2).unwrap();
        assert_eq!((&read, read.len(), read.is_empty()), (&headers, 2, false));
        assert_eq!(read.get("streamtype"), Some(&b"stdin"[..]), "the first of several values");
        assert_eq!((read.get("port"), read.get("host")), (Some(&b""[..]), None));
        assert_eq!(Headers::decode(block.clone().into(), 1), Err(SpdyError::TooLarge));
        for cut in 0..block.len() {
            assert!(Headers::decode(block[..cut].to_vec().into(), 2).is_err(), "{cut} bytes");
        }
        let more = [&block[..], b"x"].concat();
        assert_eq!(Headers::decode(more.into(), 2), Err(SpdyError::Malformed("bytes after the headers")));
    }

    #[test]
    fn names_are_lower_case_and_unique() {
        let read = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs
                .iter()
                .map(|(n, v)| (Bytes::from_static(n.as_bytes()), Bytes::from_static(v.as_bytes())));
            Headers::decode(Headers(pairs.collect()).encode().into(), 9).map(drop)
        };
        assert_eq!(read(&[("a", "1"), ("b", "1")]), Ok(()));
        for wrong in [&[("A", "1")][..], &[("", "1")], &[("a", "1"), ("a", "2")]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
