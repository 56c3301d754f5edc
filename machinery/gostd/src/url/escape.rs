//! Percent escapes: `url.PathUnescape`, `url.QueryUnescape` and their inverses.

use std::borrow::Cow;

/// True if each percent sign is followed by two hexadecimal digits.
#[must_use]
pub fn escapes_are_whole(text: &str) -> bool {
    let digits =
        |tail: &str| tail.as_bytes().get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    text.split('%').skip(1).all(digits)
}

/// Decodes percent escapes, and optionally `+` as a space (`url.QueryUnescape`).
///
/// Returns `None` when an escape is malformed. Bytes that are not UTF-8 are kept.
#[must_use]
pub fn unescape(bytes: &[u8], plus_is_space: bool) -> Option<Cow<'_, [u8]>> {
    if !bytes.iter().any(|byte| *byte == b'%' || (plus_is_space && *byte == b'+')) {
        return Some(Cow::Borrowed(bytes));
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        match first {
            b'%' => {
                let (pair, tail) = rest.split_at_checked(2)?;
                out.push(hex_pair(pair[0], pair[1])?);
                rest = tail;
            }
            b'+' if plus_is_space => out.push(b' '),
            byte => out.push(*byte),
        }
    }
    Some(Cow::Owned(out))
}

/// Appends bytes to a URL; those for which `keeps` returns false become `%XX` with capital digits.
pub fn escape_into(out: &mut Vec<u8>, bytes: &[u8], keeps: impl Fn(u8) -> bool) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        if keeps(*byte) {
            out.push(*byte);
        } else {
            out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// True for characters that Go never escapes (RFC 3986, section 2.3).
#[must_use]
pub fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~')
}

/// Returns the byte of two hexadecimal digits of either case.
#[must_use]
pub fn hex_pair(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_require_two_digits() {
        let read = |text: &str| (escapes_are_whole(text), unescape(text.as_bytes(), false).is_some());
        assert!(["", "a", "%41", "a%2fb%2F"].iter().all(|text| read(text) == (true, true)));
        assert!(["%", "%4", "%zz", "%%41", "%4%1", "%é"].iter().all(|text| read(text) == (false, false)));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_preserved() {
        assert_eq!(unescape(b"a%FFb", true).unwrap().as_ref(), b"a\xFFb");
    }
}
